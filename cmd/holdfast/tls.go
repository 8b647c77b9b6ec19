package main

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/follow"
)

// certificate is the server's certificate for TLS, as its files have it.
type certificate = follow.Files[*tls.Certificate]

// openCertificate reads the certificate that the flags name; nil is none.
func (o *options) openCertificate() (*certificate, error) {
	switch {
	case o.tlsCert == "" && o.tlsKey == "":
		return nil, nil
	case o.tlsCert == "" || o.tlsKey == "":
		return nil, errors.New("--tls-cert and --tls-key go together: a certificate with its chain, and its key")
	}
	c, err := follow.Open(readPair, o.tlsCert, o.tlsKey)
	if err != nil {
		return nil, fmt.Errorf("the certificate for TLS cannot be used: %w", err)
	}
	return c, nil
}

func readPair(texts ...[]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	return &pair, err
}

// tlsConfig serves each new connection with the certificate that is current then.
func tlsConfig(c *certificate) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Get(), nil },
	}
}
