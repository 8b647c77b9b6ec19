package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"
)

// issuer is an OpenID Connect provider with one key.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func startIssuer() (*issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	i := &issuer{key: key}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	return i, nil
}

// serve describes the provider and its key.
func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/a", "token_endpoint": i.URL + "/t",
		"id_token_signing_alg_values_supported": []string{"RS256"}}
	if r.URL.Path == "/keys" {
		answer = map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes())}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// token returns a token for a user, which is valid for an hour.
func (i *issuer) token(user string) (string, error) {
	header, err := json.Marshal(map[string]any{"alg": "RS256", "kid": "1"})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"iss": i.URL, "aud": "bench", "sub": user, "groups": []string{"g5", "g7", "g9"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		return "", err
	}
	signed := encode(header) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	return signed + "." + encode(signature), err
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// writeCertificate writes a certificate for loopback addresses and its key, and returns the flags for them.
func writeCertificate(dir string) (flags []string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	return []string{"--tls-cert", write("cert.pem", "CERTIFICATE", der), "--tls-key", write("key.pem", "PRIVATE KEY", private)}, err
}
