package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/client"
)

// access says which server a command speaks to, and as whom.
type access struct {
	server, keyFile, holder, ca string
	patience                    time.Duration
}

// keyVariable has the API key. There is no flag for it: everybody on the machine can read command lines.
const keyVariable = "HOLDFAST_API_KEY"

func (a *access) flags(flags *flag.FlagSet) {
	flags.StringVar(&a.server, "server", "http://127.0.0.1:8080", "`URL` of the server")
	flags.StringVar(&a.keyFile, "api-key-file", "", "`file` with the API key, if it is not in "+keyVariable)
	flags.StringVar(&a.holder, "holder", "", "`name` that other clients see, if the server has no users; the default is the user and the machine")
	flags.StringVar(&a.ca, "ca", "", "`file` of the certificates of authorities to trust, if they are not the system's")
	flags.DurationVar(&a.patience, "patience", 10*time.Second, "time limit of retries while the server cannot be reached")
}

func defaultHolder() string {
	name := "somebody"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return strings.ToValidUTF8(name[:min(len(name), 64)], "")
}

// open returns a client.
func (a *access) open() (*client.Client, error) {
	config := client.Config{URL: a.server, Key: os.Getenv(keyVariable), Name: cmp.Or(a.holder, defaultHolder()), Patience: a.patience}
	if a.keyFile != "" {
		text, err := os.ReadFile(a.keyFile)
		if err != nil {
			return nil, fmt.Errorf("the API key cannot be read: %w", err)
		}
		config.Key = strings.TrimSpace(string(text))
	}
	if a.ca != "" {
		text, err := os.ReadFile(a.ca)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(text) {
			err = errors.New("it has no certificate in PEM format")
		}
		if err != nil {
			return nil, fmt.Errorf("the authorities in %s cannot be used: %w", a.ca, err)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		config.HTTP = &http.Client{Transport: transport}
	}
	return client.New(config)
}

// environment returns the variables that give the same access to another program, which may run in another folder.
func (a *access) environment() []string {
	list := []string{variable("server") + "=" + a.server}
	for flag, file := range map[string]string{"api-key-file": a.keyFile, "ca": a.ca} {
		if full, err := filepath.Abs(file); file != "" && err == nil {
			list = append(list, variable(flag)+"="+full)
		}
	}
	return list
}

// with calls f with a client, and ends the client.
func (a *access) with(ctx context.Context, f func(*client.Client) error) error {
	c, err := a.open()
	if err != nil {
		return err
	}
	err = f(c)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.patience)
	defer cancel()
	return errors.Join(err, c.Close(closing))
}

// isPlace reports whether an argument is a place, and no document.
func isPlace(arg string) bool { return strings.Contains(arg, "/") }

// pathOf returns the path of an argument: a document's id, or a place with slashes, whose components are percent-encoded.
func pathOf(arg string) (path []string, err error) {
	if !isPlace(arg) {
		return client.DocumentPath(arg), nil
	}
	for _, part := range strings.Split(strings.Trim(arg, "/"), "/") {
		component, err := url.PathUnescape(part)
		if err != nil || component == "" {
			return nil, fmt.Errorf("%q is not a place such as book/chapter%%201: components are not empty, and %% begins an escaped byte", arg)
		}
		path = append(path, component)
	}
	return path, nil
}
