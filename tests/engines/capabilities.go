package engines

import (
	"fmt"
	"strings"
)

// Columns are what the table of engines tells of each, beside its name and version.
var Columns = []string{"Web Locks", "Worker host", "Page host", "OPFS sync access handles", "BroadcastChannel", "Symbol.asyncDispose"}

// Row is what one engine has, by column: "yes" or "no".
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

// WithStorage is the name of WebKitGTK with [Options.Storage].
const WithStorage = "WebKitGTK, storage switched on"

// Known is what each engine has. The tests measure it and fail where this, or the table in docs/engines.md, says
// otherwise.
var Known = map[string]map[string]string{
	"Chromium": has(),
	"Firefox":  has(),
	// Its StorageAPI and FileSystem features are compiled in, but off unless the embedding program turns them on.
	"WebKitGTK": has("OPFS sync access handles", "Symbol.asyncDispose"),
	WithStorage: has("Symbol.asyncDispose"),
}

// Limits are what the tests cannot do in an engine, with the reason: by engine and by what a scenario needs. What is
// not listed can be done.
var Limits = map[string]map[string]string{
	"WebKitGTK": {
		"kill": "WebKitWebDriver ends its session, with every tab, when the process of any page dies",
	},
}

// Markdown returns the table of the rows.
func Markdown(rows []Row) string {
	var table strings.Builder
	line := func(cells ...string) { fmt.Fprintf(&table, "| %s |\n", strings.Join(cells, " | ")) }
	line(append([]string{"Engine", "Version"}, Columns...)...)
	line(strings.Split(strings.Repeat("--- ", len(Columns)+2)[:4*(len(Columns)+2)-1], " ")...)
	for _, row := range rows {
		cells := []string{row.Engine, row.Version}
		for _, column := range Columns {
			cells = append(cells, row.Has[column])
		}
		line(cells...)
	}
	return table.String()
}
