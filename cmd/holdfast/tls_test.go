package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeCertificate makes a certificate for this machine with a serial number and writes it with its key.
func writeCertificate(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	// Not at once, as a program that renews certificates: between the two they do not fit.
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// A renewed certificate counts for new connections, and those that are open go on.
func TestCertificatesAreRenewedWithoutARestart(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	writeCertificate(t, cert, key, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--drain", "0s", "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--tls-cert", cert, "--tls-key", key}, site, stdout, io.Discard)
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address := strings.TrimPrefix(regexp.MustCompile(`https://localhost:\d+`).FindString(line), "https://localhost")
	require.NotEmpty(t, address, line)

	dial := func() *tls.Conn {
		conn, err := tls.Dial("tcp", "127.0.0.1"+address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		require.NoError(t, err)
		return conn
	}
	ask := func(conn *tls.Conn) (status int, cookie string) {
		request, err := http.NewRequest("GET", "https://127.0.0.1"+address+"/api/documents/r/lock", nil)
		require.NoError(t, err)
		require.NoError(t, request.Write(conn))
		response, err := http.ReadResponse(bufio.NewReader(conn), request)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header.Get("Set-Cookie")
	}
	serial := func(conn *tls.Conn) int64 { return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64() }
	old := dial()
	defer func() { _ = old.Close() }()
	assert.Equal(t, int64(1), serial(old))
	_, cookie := ask(old)
	assert.True(t, strings.HasPrefix(cookie, "__Host-holdfast_session"), cookie)
	assert.Contains(t, cookie, "Secure")

	writeCertificate(t, cert, key, 2)
	require.Eventually(t, func() bool {
		conn := dial()
		defer func() { _ = conn.Close() }()
		return serial(conn) == 2
	}, 30*time.Second, 50*time.Millisecond)
	status, _ := ask(old)
	assert.Equal(t, http.StatusOK, status, "an open connection goes on")

	stop()
	assert.NoError(t, <-ended)
}

func TestServeSaysWhyACertificateCannotBeUsed(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	writeCertificate(t, cert, key, 1)
	for want, args := range map[string][]string{
		"go together":             {"--tls-cert", cert},
		"no such file":            {"--tls-cert", cert, "--tls-key", key + "x"},
		"cannot be used: " + cert: {"--tls-cert", cert, "--tls-key", cert},
	} {
		err := run(t.Context(), append([]string{"serve", "--drain", "0s", "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()}, args...), site, io.Discard, io.Discard)
		assert.ErrorContains(t, err, want)
	}
}
