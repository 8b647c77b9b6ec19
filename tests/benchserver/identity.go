package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// rules is the number of rules of the policy. The last one decides.
const rules = 1000

// asked is one of several servers that are asked in turn, over a kept connection.
type asked struct {
	*server
	secret        string
	looks, cycles []time.Duration
	cpu           time.Duration // of the looks
}

// identity measures what the check of a token and of a policy adds to a request, and what they and TLS add to an
// acquisition. The servers are asked in turn, so that other programs slow all of them alike.
func identity(t *table, plain *server, binary string, rounds int) error {
	provider, err := startIssuer()
	if err != nil {
		return err
	}
	defer provider.Close()
	token, err := provider.token("ann")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	known, encrypted, err := startKnowing(binary, dir, provider)
	if err != nil {
		return err
	}
	defer known.stop()
	defer encrypted.stop()
	all := []*asked{{server: plain, secret: "bench"}, {server: known, secret: token}, {server: encrypted, secret: token}}
	for _, a := range all {
		if err := a.warm(rounds / 10); err != nil {
			return err
		}
	}
	for i := range rounds {
		for _, a := range all {
			if err := a.cycle(i); err != nil {
				return err
			}
		}
	}
	for range 10 {
		for _, a := range all {
			if err := a.look(rounds); err != nil {
				return err
			}
		}
	}
	t.identityRows(all[0], all[1], all[2], rounds*10)
	return nil
}

// startKnowing starts two servers that check tokens and rules, the second with TLS.
func startKnowing(binary, dir string, provider *issuer) (known, encrypted *server, err error) {
	flags, err := writePolicy(dir)
	if err != nil {
		return nil, nil, err
	}
	flags = append(flags, "--oidc-issuer", provider.URL, "--oidc-audience", "bench")
	certificate, err := writeCertificate(dir)
	if err != nil {
		return nil, nil, err
	}
	if known, err = startServer(binary, flags...); err != nil {
		return nil, nil, err
	}
	if encrypted, err = startServer(binary, append(flags, certificate...)...); err != nil {
		known.stop()
	}
	return known, encrypted, err
}

func (t *table) identityRows(plain, known, encrypted *asked, looks int) {
	each := func(a *asked) float64 { return float64(a.cpu.Microseconds()) / float64(looks) }
	what := "a look at a lock, p50, and processor time in the server: "
	for _, r := range []struct {
		who string
		a   *asked
	}{{"anonymous, no policy", plain}, {"a token and 1,000 rules", known}, {"the same over TLS", encrypted}} {
		t.add(what+r.who, "holdfast", fmt.Sprintf("%.0f µs, %.0f µs", us(quantile(r.a.looks, .5)), each(r.a)), "")
	}
	t.add("a token and 1,000 rules add to a look: p50, processor time", "holdfast",
		fmt.Sprintf("%.0f µs, %.0f µs", us(quantile(known.looks, .5)-quantile(plain.looks, .5)), each(known)-each(plain)), "50 µs")
	ratios := make([]time.Duration, len(plain.cycles)) // in thousandths
	for i := range ratios {
		ratios[i] = 1000 * encrypted.cycles[i] / plain.cycles[i]
	}
	before, after := quantile(plain.cycles, .5), quantile(encrypted.cycles, .5)
	t.add("acquire, p50: anonymous; with TLS, a token and 1,000 rules; median of the ratios", "holdfast",
		fmt.Sprintf("%.2f ms; %.2f ms, %+.0f %%; %+.0f %%", ms(before), ms(after), 100*(float64(after)/float64(before)-1),
			float64(quantile(ratios, .5))/10-100), "+15 %")
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// writePolicy writes the rules and returns the flag for them.
func writePolicy(dir string) (flags []string, err error) {
	var text strings.Builder
	for i := range rules - 1 {
		fmt.Fprintf(&text, "group:team-%d documents/team-%d-* read lock write\n", i, i)
	}
	text.WriteString("signed-in documents read lock write\n")
	path := filepath.Join(dir, "policy")
	return []string{"--policy", path}, os.WriteFile(path, []byte(text.String()), 0o600)
}

func (a *asked) warm(rounds int) error {
	for i := range rounds {
		if err := a.cycle(-1 - i); err != nil {
			return err
		}
		if err := a.do("GET", "/api/documents/looked/lock", a.secret, nil, nil); err != nil {
			return err
		}
	}
	a.cycles = nil
	return nil
}

// cycle acquires and releases once.
func (a *asked) cycle(i int) error {
	document := "team-999-" + strconv.Itoa(i)
	begin := time.Now()
	if _, err := a.call("POST", document, a.secret); err != nil {
		return err
	}
	a.cycles = append(a.cycles, time.Since(begin))
	_, err := a.call("DELETE", document, a.secret)
	return err
}

// look asks for the state of a lock that nobody holds, again and again.
func (a *asked) look(rounds int) error {
	before, _, err := a.usage()
	if err != nil {
		return err
	}
	for range rounds {
		begin := time.Now()
		if err := a.do("GET", "/api/documents/looked/lock", a.secret, nil, nil); err != nil {
			return err
		}
		a.looks = append(a.looks, time.Since(begin))
	}
	after, _, err := a.usage()
	a.cpu += after - before
	return err
}
