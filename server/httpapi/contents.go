package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

func (a *API) readContent(w http.ResponseWriter, r *http.Request, _ sessions.Session, id string) error {
	return a.ServeContent(w, r, id, nil)
}

// ServeContent responds with the content of a document, as GET and HEAD of the API do. Before that it calls check, if there is one, with
// the generation that it sends.
func (a *API) ServeContent(w http.ResponseWriter, r *http.Request, id string, check func(content.Info) error) error {
	for {
		c, err := a.Contents.Find(r.Context(), id, r.URL.Query().Get("generation"))
		if err == nil && check != nil {
			err = check(c.Info)
		}
		if err != nil {
			return err
		}
		asked := conditions{r.Header}
		if !asked.satisfied(c.Info) {
			return content.ErrPrecondition
		}
		describe(w.Header(), c.Info)
		if asked.fresh(c.Info) {
			w.WriteHeader(http.StatusNotModified) // and no bytes are sent
			return nil
		}
		if r.Method == http.MethodHead && r.Header.Get("Range") == "" {
			w.Header().Set("Accept-Ranges", "bytes")
			w.Header().Set("Content-Length", strconv.Itoa(c.Size))
			w.WriteHeader(http.StatusOK)
			return nil
		}
		data, err := c.Open(r.Context())
		if err != nil {
			clearHeader(w.Header())
		}
		if errors.Is(err, content.ErrNotFound) && r.Context().Err() == nil {
			continue // it was replaced or deleted just now
		}
		if err != nil {
			return err
		}
		return errors.Join(serveRange(w, r, c.SavedAt, data), data.Close())
	}
}

// describe sets the headers that describe a content.
func describe(header http.Header, info content.Info) {
	header.Set("ETag", info.ETag)
	header.Set(tokenHeader, strconv.FormatInt(info.Token, 10))
	if save := info.Save.String(); save != "" {
		header.Set(saveHeader, save)
	}
	header.Set(generationHeader, info.Generation)
	header.Set(savedAtHeader, events.Time(info.SavedAt).String()) // Last-Modified has a resolution of seconds
	header.Set("Last-Modified", info.SavedAt.UTC().Format(http.TimeFormat))
	// The bytes come from another user and must never become a page of this origin.
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", "attachment")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
}

func (a *API) showHistory(w http.ResponseWriter, r *http.Request, _ sessions.Session, id string) error {
	history, err := a.Contents.History(r.Context(), id)
	if err != nil {
		return err
	}
	list := make([]generation, len(history))
	for i, info := range history {
		list[i] = generation{info.Generation, info.ETag, info.Token, info.Size, events.Time(info.SavedAt)}
	}
	writeJSON(w, http.StatusOK, historyReply{list})
	return nil
}

func (a *API) deleteDocument(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	erases := r.Header.Get(tokenHeader) == "" && a.may(s, locks.Document(id), policy.Admin) == nil
	token, err := readToken(r)
	if err != nil && !erases {
		return err
	}
	if _, err := a.readAll(w, r, maxBody); err != nil {
		return err
	}
	if erases {
		if err := a.audited(r, s, audit.Entry{Event: audit.Delete}); err != nil {
			return err
		}
		if err := a.Contents.Erase(r.Context(), id, expected(r)); err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, done{Success: true})
		return nil
	}
	save, err := readSave(r)
	if err != nil {
		return err
	}
	owner, err := a.ownerAt(r.Context(), s, id)
	if err != nil {
		return err
	}
	if err := a.Contents.Delete(r.Context(), id, owner, token, save, expected(r)); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, done{Success: true})
	return nil
}

// Each defaultPage entries of a page count as a request, because each entry costs as much as a small one.
const defaultPage, maxPage = 100, 1000

func (a *API) listDocuments(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	query := r.URL.Query()
	limit, err := pageSize(query.Get("limit"))
	if err == nil {
		err = a.countMore(r, s, int(limit-1)/defaultPage)
	}
	if err != nil {
		return err
	}
	prefix, after := query.Get("prefix"), query.Get("after")
	if sealed, ok := strings.CutPrefix(after, sealedMark); ok {
		if after, ok = a.Sessions.Unseal(sealed); !ok {
			return errDocumentID
		}
		after = strings.TrimRight(after, " ")
	}
	for _, text := range []string{prefix, after} {
		if text != "" && !documentPattern.MatchString(text) {
			return errDocumentID
		}
	}
	documents, next, err := a.readableDocuments(r, s, prefix, after, limit)
	if err != nil {
		return err
	}
	page := documentPage{Documents: make([]documentReply, len(documents)), Next: next}
	for i, d := range documents {
		page.Documents[i] = documentReply{d.ID, d.ID, d.Size, events.Time(d.SavedAt), d.ETag,
			a.Locks.ConflictInView(locks.Document(d.ID), func(paths []locks.Path) bool { return len(a.readable(s, paths)) > 0 })}
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

// maxLooked is the number of documents after which a request ends its page, even if the session may read none of them. Tests
// change it.
var maxLooked int64 = 10_000

// sealedMark begins a sealed position. No id begins so.
const sealedMark = "!"

// readableDocuments lists the documents that the session may read. next is the position after them, "" at the end. It is sealed
// if it is that of a document which the session may not know.
func (a *API) readableDocuments(r *http.Request, s sessions.Session, prefix, after string, limit int64) (list []content.Document, next string, err error) {
	rules := a.Policy()
	for looked, size := int64(0), limit; looked < maxLooked; looked, size = looked+size, maxPage {
		if looked > 0 && !a.allowMore(r, s, maxPage/defaultPage) {
			break // the next request goes on
		}
		page, err := a.Contents.Documents(r.Context(), prefix, after, size)
		if err != nil {
			return nil, "", err
		}
		for _, d := range page {
			if after = d.ID; rules.May(s.User, locks.Document(d.ID), policy.Read) {
				if list = append(list, d); int64(len(list)) == limit {
					return list, d.ID, nil
				}
			}
		}
		if int64(len(page)) < size {
			return list, "", nil
		}
	}
	return list, sealedMark + a.Sessions.Seal(fmt.Sprintf("%-128s", after)), nil // its length does not tell that of the id
}

func pageSize(text string) (int64, error) {
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxPage {
		return 0, invalid("limit is from 1 to " + strconv.Itoa(maxPage) + ".")
	}
	return n, nil
}
