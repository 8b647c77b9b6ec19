package kv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// TLSFiles are the files of a certificate and its key, and of the authorities to trust. Renewed files of the certificate
// and the key are in use from the next connection on.
type TLSFiles struct{ Cert, Key, CA string }

func (f TLSFiles) used() bool { return f != TLSFiles{} }

func (f TLSFiles) info() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: f.Cert, KeyFile: f.Key, TrustedCAFile: f.CA, ClientCertAuth: f.CA != "",
		// The certificate of the authority identifies a member, whatever its address.
		SkipClientSANVerify: true,
	}
}

// check returns an error if the files cannot be used now.
func (f TLSFiles) check(now time.Time) error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("a certificate and its key go together")
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return fmt.Errorf("the certificate %s with the key %s cannot be used: %w", f.Cert, f.Key, err)
		}
		switch {
		case now.After(pair.Leaf.NotAfter):
			return fmt.Errorf("the certificate %s has expired at %s; renew it", f.Cert, pair.Leaf.NotAfter.Format(time.RFC3339))
		case now.Before(pair.Leaf.NotBefore):
			return fmt.Errorf("the certificate %s is valid from %s only; check the clock", f.Cert, pair.Leaf.NotBefore.Format(time.RFC3339))
		}
	}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = errors.New("it has no certificate in PEM format")
		}
		if err != nil {
			return fmt.Errorf("the authorities in %s cannot be used: %w", f.CA, err)
		}
	}
	return nil
}

// client returns the configuration of a client; nil means no TLS.
func (f TLSFiles) client() (*tls.Config, error) {
	if !f.used() {
		return nil, nil
	}
	if err := f.check(time.Now()); err != nil {
		return nil, err
	}
	return f.info().ClientConfig()
}

// probeLimit is the maximum time of each step of a probe.
const probeLimit = 5 * time.Second

// refusal returns why an endpoint refuses a connection, or nil. The client of etcd reports only that its time is over.
// So refusal has a time of its own.
func (f TLSFiles) refusal(ctx context.Context, endpoint string) error {
	ctx = context.WithoutCancel(ctx)
	config, err := f.client()
	if err != nil {
		return err
	}
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		endpoint = u.Host
		if config == nil && u.Scheme == "https" {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	dialer := net.Dialer{Timeout: probeLimit}
	conn, err := dialer.DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if config == nil {
		return nil
	}
	config.ServerName, _, _ = net.SplitHostPort(endpoint)
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	if err := secure.SetDeadline(time.Now().Add(probeLimit)); err != nil {
		return err
	}
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	// With TLS 1.3, a server refuses the client's certificate after the handshake.
	if _, err := secure.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}
