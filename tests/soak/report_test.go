package soak

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// report returns the report of a run.
func (r *run) report(t time.Duration) string {
	c := r.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "# Soak\n\nSeed %d, %v of %d tabs on %d machines with a server each, TTL %v.\n", r.seed, t.Round(time.Second), tabs, machines, ttl)
	fmt.Fprintf(&b, "\n%d leases granted, the longest wait %v (%s); %d saves acknowledged; %d writes under an old token refused.\n",
		c.ledger.grants, c.ledger.longest.Round(time.Millisecond), c.ledger.slowest, c.archive.saves, c.ledger.refused)
	table(&b, "Operations", c.count)
	table(&b, "Faults", r.faults)
	violations := slices.Concat(c.ledger.violations, c.archive.violations, c.violations)
	b.WriteString("\n## Violations\n\n")
	if len(violations) == 0 {
		b.WriteString("None.\n")
	}
	for _, v := range violations {
		fmt.Fprintf(&b, "- %s\n", v)
	}
	return b.String()
}

func table(b *strings.Builder, title string, count map[string]int) {
	fmt.Fprintf(b, "\n## %s\n\n| What | How often |\n| --- | ---: |\n", title)
	for _, what := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(b, "| %s | %d |\n", what, count[what])
	}
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
