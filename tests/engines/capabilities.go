package engines

import (
	"fmt"
	"slices"
	"strings"
)

// Columns are the columns of the table of engines, after the name and the version.
var Columns = []string{"Web Locks", "Worker host", "Page host", "OPFS sync access handles", "BroadcastChannel", "AutoSave"}

// Row contains the capabilities of one engine by column: "yes" or "no".
type Row struct {
	Engine, Version string
	Has             map[string]string
}

func has(missing ...string) map[string]string {
	cells := map[string]string{}
	for _, column := range Columns {
		cells[column] = "yes"
	}
	for _, column := range missing {
		cells[column] = "no"
	}
	return cells
}

// Known contains the capabilities of each engine. The tests measure them, and fail if this table or the one in
// docs/engines.md differs.
var Known = map[string]map[string]string{
	"Chromium": has(),
	"Firefox":  has(),
	// navigator.storage is off unless the embedding program enables it. createSyncAccessHandle then rejects with
	// NotSupportedError, because the GTK port has no backend for it.
	"WebKitGTK": has("OPFS sync access handles"),
}

// Limits lists what the tests cannot do in an engine, with the reason, by engine and by the ability that a scenario
// needs. Everything else is possible.
var Limits = map[string]map[string]string{
	"Firefox": {
		"freeze a page":                         "it freezes no page, and has no command for that",
		"keep a page in the back/forward cache": "a page that edits is loaded again",
	},
	"WebKitGTK": {
		"kill":                  "WebKitWebDriver ends its session, with every tab, when the process of any page dies",
		"hear a worker console": "neither WebKitWebDriver nor MiniBrowser in automation mode tells the console",
	},
}

// Markdown returns the table of the rows.
func Markdown(rows []Row) string {
	var lines [][]string
	for _, row := range rows {
		cells := []string{row.Engine, row.Version}
		for _, column := range Columns {
			cells = append(cells, row.Has[column])
		}
		lines = append(lines, cells)
	}
	return table(append([]string{"Engine", "Version"}, Columns...), lines)
}

// Figures are the measurements of one engine and host, in milliseconds by column.
type Figures struct {
	Engine, Host string
	Took         map[string]float64
}

// FigureColumns are the columns of the table of figures: how the holder of a lock ended while a second tab waited,
// and the latest heartbeat.
var FigureColumns = []string{"release", "close", "reload", "kill", "latest beat",
	"file: release", "file: close", "file: reload", "file: navigate", "file: kill"}

// FiguresMarkdown returns the table of the figures.
func FiguresMarkdown(figures []Figures) string {
	var lines [][]string
	for _, f := range figures {
		cells := []string{f.Engine, f.Host}
		for _, column := range FigureColumns {
			cell := "–"
			if ms, ok := f.Took[column]; ok {
				cell = fmt.Sprintf("%.0f", ms)
			}
			cells = append(cells, cell)
		}
		lines = append(lines, cells)
	}
	return table(append([]string{"Engine", "Host"}, FigureColumns...), lines)
}

func table(head []string, lines [][]string) string {
	var text strings.Builder
	rule := slices.Repeat([]string{"---"}, len(head))
	for _, cells := range append([][]string{head, rule}, lines...) {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
	}
	return text.String()
}
