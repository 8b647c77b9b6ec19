// Package autosave saves what a page edits, by itself, and loses nothing.
package autosave
