package autosavetest

import "github.com/holdfast-dev/holdfast/autosave"

// Page returns the fake store of one page: an [autosave.Layout] over the disk.
func (d *Disk) Page() Page {
	return PageOf(d.Stepped(nil), SHA256)
}

// Storage returns the disk in the form that the suite needs.
func (d *Disk) Storage() Storage {
	return Storage{
		Open:    d.Page,
		Corrupt: func(id string) { d.Corrupt(autosave.FolderHistory + "/" + id) },
		Evict:   d.Evict,
		Forget:  d.Forget,
	}
}
