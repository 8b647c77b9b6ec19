package campaign

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// report returns the report of a campaign.
func (r *run) report() string {
	var b strings.Builder
	o, took := r.oracle, time.Since(r.begun)
	fmt.Fprintf(&b, "# Campaign\n\nSeed %d. %d endings of a document in a page within %v: %.0f a minute. %d tabs with %d documents each, journal every %v.\n",
		r.seed, r.endings, took.Round(time.Second), float64(r.endings)/took.Minutes(), tabs, perPage, journal)
	fmt.Fprintf(&b, "\nControl writes, timer to answer: %s. A word is required after an abrupt end when %d control writes that began after the journal was due had finished.\n", spread(o.controls), margin)
	fmt.Fprintf(&b, "\nFrom a word to the answer of the journal's worker: %s.\n", spread(o.journals))
	fmt.Fprintf(&b, "\nAge of the words that abrupt ends took by right: %s.\n", spread(o.lostAges))
	b.WriteString("\n| What | How often |\n| --- | ---: |\n")
	for _, what := range slices.Sorted(maps.Keys(o.count)) {
		fmt.Fprintf(&b, "| %s | %d |\n", what, o.count[what])
	}
	b.WriteString("\n## Violations\n\n")
	if len(o.violations) == 0 {
		b.WriteString("None.\n")
	}
	for _, v := range o.violations {
		fmt.Fprintf(&b, "- %s\n", v)
	}
	if len(o.failures) > 0 {
		fmt.Fprintf(&b, "\n## Besides\n\n- %s\n", strings.Join(o.failures[:min(len(o.failures), 10)], "\n- "))
	}
	return b.String()
}

// spread describes a distribution of durations.
func spread(list []time.Duration) string {
	if len(list) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(list))
	at := func(share float64) time.Duration {
		return sorted[int(share*float64(len(sorted)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d, median %v, 99 of 100 within %v, the longest %v", len(sorted), at(0.5), at(0.99), at(1))
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
