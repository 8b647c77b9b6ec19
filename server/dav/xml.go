package dav

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/server/httpapi"
)

const (
	davSpace   = "DAV:"
	xmlSpace   = "http://www.w3.org/XML/1998/namespace"
	xmlnsSpace = "http://www.w3.org/2000/xmlns/"
	// maxNested is the maximum depth of a request's body in elements. maxExpanded is the maximum size of the namespaces of all names together,
	// in bytes, because each name is written with its namespace.
	maxNested, maxExpanded = 64, 512 << 10
)

var errXML = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "The body is not the XML that this method takes.")

// element is an element of a request's body. Text is a child without a name.
type element struct {
	name     xml.Name
	attrs    []xml.Attr
	children []element
	text     string
}

// child returns the first child of the DAV namespace with this name.
func (e element) child(name string) (element, bool) {
	i := slices.IndexFunc(e.children, func(c element) bool { return c.name == xml.Name{Space: davSpace, Local: name} })
	if i < 0 {
		return element{}, false
	}
	return e.children[i], true
}

// elements returns the children that are elements.
func (e element) elements() (list []element) {
	for _, c := range e.children {
		if c.name.Local != "" {
			list = append(list, c)
		}
	}
	return list
}

// readXML reads a body, or returns nil for an empty one.
func (h *Handler) readXML(c *call, name string) (*element, error) {
	text, err := h.API.ReadSmall(c.w, c.r)
	if err != nil {
		return nil, err
	}
	return parseXML(text, name)
}

// parseXML reads an element of that name. A document type is refused, so there are no entities to expand.
func parseXML(text []byte, name string) (*element, error) {
	if len(text) == 0 {
		return nil, nil
	}
	p := parser{decoder: xml.NewDecoder(bytes.NewReader(text)), spaces: []string{"", xmlSpace}}
	e, err := p.document()
	if err != nil || e.name != (xml.Name{Space: davSpace, Local: name}) {
		return nil, errXML
	}
	return e, nil
}

type parser struct {
	decoder *xml.Decoder
	spaces  []string // the namespaces that are declared
	depth   int
	// expanded is the size of the namespaces of all names so far.
	expanded int
}

var errMalformed = errors.New("the XML is malformed")

func (p *parser) document() (*element, error) {
	var found *element
	for {
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) && found != nil {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.Directive:
			return nil, errMalformed
		case xml.StartElement:
			if found != nil {
				return nil, errMalformed
			}
			e, err := p.element(token)
			if err != nil {
				return nil, err
			}
			found = &e
		}
	}
}

// element reads an element whose start has been read.
func (p *parser) element(start xml.StartElement) (e element, err error) {
	e.name = start.Name
	outside := len(p.spaces)
	defer func() { p.spaces = p.spaces[:outside]; p.depth-- }()
	if e.attrs, err = p.attributes(start); err != nil {
		return e, err
	}
	if p.depth++; p.depth > maxNested || !p.declared(e.name) || slices.ContainsFunc(e.attrs, func(a xml.Attr) bool { return !p.declared(a.Name) }) {
		return e, errMalformed
	}
	if p.expand(e); p.expanded > maxExpanded {
		return e, errMalformed
	}
	for {
		token, err := p.decoder.Token()
		if err != nil {
			return e, err
		}
		switch token := token.(type) {
		case xml.Directive:
			return e, errMalformed
		case xml.StartElement:
			child, err := p.element(token)
			if err != nil {
				return e, err
			}
			e.children = append(e.children, child)
		case xml.CharData:
			e.children = append(e.children, element{text: string(token)})
		case xml.EndElement:
			return e, nil
		}
	}
}

// expand adds the namespaces of an element's names.
func (p *parser) expand(e element) {
	p.expanded += len(e.name.Space)
	for _, a := range e.attrs {
		p.expanded += len(a.Name.Space)
	}
}

// attributes returns the attributes of an element, and declares its namespaces. The decoder accepts an attribute that is there
// twice, colons anywhere in a name, and namespaces that nobody may declare. Other programs could not read such an element.
func (p *parser) attributes(start xml.StartElement) (list []xml.Attr, err error) {
	seen := map[xml.Name]bool{}
	for _, a := range start.Attr {
		declares := a.Name.Space == "xmlns" || a.Name == xml.Name{Local: "xmlns"}
		switch {
		case seen[a.Name], strings.Contains(a.Name.Local, ":"),
			declares && (a.Value == xmlSpace || a.Value == xmlnsSpace),
			a.Name.Space == "xmlns" && a.Value == "": // a prefix without a namespace
			return nil, errMalformed
		case declares:
			p.spaces = append(p.spaces, a.Value)
		default:
			list = append(list, a)
		}
		seen[a.Name] = true
	}
	if strings.Contains(start.Name.Local, ":") || start.Name.Space == xmlSpace {
		return nil, errMalformed
	}
	return list, nil
}

// declared reports whether the prefix of a name was declared; the decoder leaves another one in the place of the namespace.
func (p *parser) declared(n xml.Name) bool { return slices.Contains(p.spaces, n.Space) }

// xmlWriter writes a response. The prefix D is the DAV namespace, and each element of another one declares it.
type xmlWriter struct {
	bytes.Buffer
	outermost bool // the next element declares the prefix
}

func newXML() *xmlWriter {
	x := &xmlWriter{outermost: true}
	x.WriteString(xml.Header)
	return x
}

func (x *xmlWriter) open(name string) {
	x.WriteString("<D:" + name)
	if x.outermost {
		x.attribute("xmlns:D", davSpace)
		x.outermost = false
	}
	x.WriteString(">")
}

func (x *xmlWriter) close(name string) { x.WriteString("</D:" + name + ">") }

func (x *xmlWriter) empty(name string) { x.WriteString("<D:" + name + "/>") }

func (x *xmlWriter) text(name, text string) {
	x.open(name)
	x.escape(text)
	x.close(name)
}

func (x *xmlWriter) escape(text string) { _ = xml.EscapeText(x, []byte(text)) } // a buffer takes everything

// property writes the element of a property. The value is XML that was written by inner, or empty.
func (x *xmlWriter) property(name xml.Name, lang, value string) {
	tag := name.Local
	if name.Space == davSpace {
		tag = "D:" + tag
	}
	x.WriteString("<" + tag)
	if name.Space != davSpace {
		x.attribute("xmlns", name.Space)
	}
	if lang != "" {
		x.attribute("xml:lang", lang)
	}
	x.WriteString(">" + value + "</" + tag + ">")
}

func (x *xmlWriter) attribute(name, value string) {
	x.WriteString(" " + name + `="`)
	x.escape(value)
	x.WriteString(`"`)
}

// inner writes the children of an element so that they mean the same everywhere: each declares its namespaces.
func inner(e element) string {
	x := &xmlWriter{}
	x.children(e)
	return x.String()
}

func (x *xmlWriter) children(e element) {
	for _, c := range e.children {
		if c.name.Local == "" {
			x.escape(c.text)
			continue
		}
		x.WriteString("<" + c.name.Local)
		x.attribute("xmlns", c.name.Space)
		for i, a := range c.attrs {
			switch a.Name.Space {
			case "":
				x.attribute(a.Name.Local, a.Value)
			case xmlSpace:
				x.attribute("xml:"+a.Name.Local, a.Value)
			default:
				prefix := "a" + strconv.Itoa(i)
				x.attribute("xmlns:"+prefix, a.Name.Space)
				x.attribute(prefix+":"+a.Name.Local, a.Value)
			}
		}
		x.WriteString(">")
		x.children(c)
		x.WriteString("</" + c.name.Local + ">")
	}
}

// lang returns the language of an element, or the one that is in force around it.
func lang(e element, around string) string {
	for _, a := range e.attrs {
		if a.Name.Space == xmlSpace && a.Name.Local == "lang" {
			return a.Value
		}
	}
	return around
}

func (x *xmlWriter) send(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(x.Bytes()) // a client that does not read has gone
}
