package httpapi

import (
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/backup"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

var (
	errBackup = &apiError{http.StatusConflict, "backup_running", "This server makes a backup already. Try again when it is done."}
	errShared = &apiError{http.StatusConflict, "shared_store", "The etcd cluster has keys of other deployments, which a backup would contain. " +
		"Back up the cluster with etcdctl, and then the contents with the tools of their storage."}
)

// streamBackup answers with an archive of everything, for administrators of everything. An archive that fails has no
// end, and the connection breaks.
func (a *API) streamBackup(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	if !a.Policy().MayBelow(s.User, nil, policy.Admin) {
		return a.refused(s)
	}
	w.Header().Set("Content-Type", "application/x-tar")
	if r.Method == http.MethodHead {
		return nil
	}
	if !a.backups.TryLock() {
		return errBackup
	}
	defer a.backups.Unlock()
	if a.Contents.KV.Shared() {
		return errShared
	}
	if err := a.audited(r, s, audit.Entry{Event: audit.Backup}); err != nil {
		return err
	}
	to := &patient{ResponseWriter: w, control: http.NewResponseController(w), limit: a.WriteLimit}
	err := backup.Write(r.Context(), a.Contents, to)
	_ = to.control.SetWriteDeadline(time.Now().Add(a.WriteLimit)) // of the rest, which is written when the handler has returned
	if err == nil {
		return nil
	}
	if !to.begun {
		return err
	}
	a.Log.Error("a backup failed", "user", s.User.Name, "error", err)
	panic(http.ErrAbortHandler)
}

// patient gives a client the limit for each write, however long the whole response takes.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	begun   bool
}

func (p *patient) Write(data []byte) (int, error) {
	p.begun = true
	_ = p.control.SetWriteDeadline(time.Now().Add(p.limit)) // a writer without deadlines has no limit either
	n, err := p.ResponseWriter.Write(data)
	_ = p.control.SetWriteDeadline(time.Time{})
	return n, err
}
