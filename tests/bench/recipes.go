package main

import "github.com/holdfast-dev/holdfast/tests/docs"

// textareas are the components that must have fewer than ten lines.
var textareas = map[string]float64{"Notes.jsx": 9, "Notes.vue": 9, "Notes.svelte": 9, "Field.svelte": 9}

// recipes counts the lines of code of the recipes below root.
func (r *report) recipes(root string) error {
	r.Rounds = 0
	recipes, err := docs.Recipes(root)
	for _, of := range recipes {
		r.addRow("lines of code", of.Name, lines, []float64{float64(of.Lines)}, textareas[of.Name])
	}
	return err
}
