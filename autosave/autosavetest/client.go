package autosavetest

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Client is the [autosave.Files] of one page. Its operations can be made to fail.
type Client struct {
	Steps
	files autosave.Files
}

// NewClient returns the files, which are those of one page.
func NewClient(files autosave.Files) *Client { return &Client{files: files} }

// List implements [autosave.Files].
func (c *Client) List(ctx context.Context, folder string) ([]string, error) {
	if _, err := c.step(ctx, "list "+folder); err != nil {
		return nil, err
	}
	return c.files.List(ctx, folder)
}

// Read implements [autosave.Files].
func (c *Client) Read(ctx context.Context, folder, name string) ([]byte, error) {
	if _, err := c.step(ctx, "read "+folder+"/"+name); err != nil {
		return nil, err
	}
	return c.files.Read(ctx, folder, name)
}

// Write implements [autosave.Files].
func (c *Client) Write(ctx context.Context, folder, name string, content []byte) error {
	fault, planted := c.step(ctx, "write "+folder+"/"+name)
	switch fault {
	case Refused:
		return planted
	case Torn:
		content = content[:len(content)/2]
	}
	if err := c.files.Write(ctx, folder, name, content); err != nil {
		return err
	}
	return planted
}

// Remove implements [autosave.Files].
func (c *Client) Remove(ctx context.Context, folder, name string) error {
	fault, planted := c.step(ctx, "remove "+folder+"/"+name)
	if fault == Refused || fault == Torn {
		return planted
	}
	if err := c.files.Remove(ctx, folder, name); err != nil {
		return err
	}
	return planted
}

// Preopen implements [autosave.Files].
func (c *Client) Preopen(name, index string) {
	fault, _ := c.step(context.Background(), "preopen "+autosave.FolderHistory+"/"+name)
	if fault != Refused && fault != Torn {
		c.files.Preopen(name, index)
	}
}

// Save implements [autosave.Files]. Its steps are operations like those of the other methods: the listing once the
// content is taken, the write of each file, and the last listing.
func (c *Client) Save(ctx context.Context, s autosave.Saving) ([]string, error) {
	content, err := s.Take(ctx)
	if err == nil {
		_, err = c.step(ctx, "list "+autosave.FolderIndex)
	}
	if err != nil {
		return nil, err
	}
	if fault, planted := c.step(ctx, "write "+autosave.FolderHistory+"/"+s.Name); fault != 0 {
		if fault != Refused {
			planted = errors.Join(planted, c.left(ctx, fault, s, content))
		}
		return nil, errors.Join(autosave.ErrNotBegun, planted)
	}
	s.Take = func(context.Context) (autosave.Content, error) { return content, nil }
	encode := s.Encode
	var planted error
	s.Encode = func(bytes int64, sum string, names []string) ([]byte, error) {
		index, err := encode(bytes, sum, names)
		if err != nil {
			return nil, err
		}
		var fault Fault
		fault, planted = c.step(ctx, "write "+autosave.FolderIndex+"/"+s.Index)
		switch fault {
		case Refused:
			index = nil
		case Torn:
			index = index[:len(index)/2]
		}
		return index, nil
	}
	names, err := c.files.Save(ctx, s)
	if err == nil {
		err = planted
	}
	if err == nil {
		_, err = c.step(ctx, "list "+autosave.FolderIndex)
	}
	return names, err
}

// left writes the remains of a save whose content was not written, after the index was encoded.
func (c *Client) left(ctx context.Context, f Fault, s autosave.Saving, taken autosave.Content) error {
	content, err := taken.Bytes()
	if err != nil {
		return err
	}
	names, err := c.files.List(ctx, autosave.FolderIndex)
	if err != nil {
		return err
	}
	sum, _ := SHA256(ctx, content)
	if _, err := s.Encode(int64(len(content)), sum, names); err != nil {
		return err
	}
	for folder, name := range map[string]string{autosave.FolderIndex: s.Index, autosave.FolderHistory: s.Name} {
		if err := c.files.Remove(ctx, folder, name); err != nil { // Preopen may have made it
			return err
		}
	}
	if err := c.files.Write(ctx, autosave.FolderIndex, s.Index, nil); err != nil {
		return err
	}
	file := slices.Concat(content, autosave.Seal(int64(len(content)), sum, s.Note()))
	if f == Torn {
		file = file[:len(file)/2]
	}
	return c.files.Write(ctx, autosave.FolderHistory, s.Name, file)
}

// PageOf returns an [autosave.Layout] over the files, in the form that the suite needs.
func PageOf(files autosave.Files, digest autosave.Digest) Page {
	c := NewClient(files)
	return Page{Store: autosave.NewLayout(c, digest), Break: c.Break, Ops: c.Ops, Mend: c.Mend}
}
