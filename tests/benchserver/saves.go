package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/remote"
)

// saves measures saves of 1 MiB, alternating with writing and flushing a file of 1 MiB.
func saves(t *table, s *server, rounds int) error {
	token, err := s.call("POST", "saved", "bench")
	if err != nil {
		return err
	}
	data := make([]byte, 1<<20)
	rand.Read(data) // never fails
	var saved, written []time.Duration
	for i := range rounds + rounds/10 {
		if _, err := s.call("PUT", "saved", "bench"); err != nil { // on a busy machine the saves take longer than the lock's TTL
			return err
		}
		data[0] = byte(i)
		begin := time.Now()
		if err := s.put("saved", token, data); err != nil {
			return err
		}
		put := time.Since(begin)
		begin = time.Now()
		if err := flushed(filepath.Join(s.dir, "file"), data); err != nil {
			return err
		}
		if file := time.Since(begin); i >= rounds/10 { // the first rounds are the warm-up
			saved, written = append(saved, put), append(written, file)
		}
	}
	t.add("save 1 MiB, p50 and p99", "holdfast", halves(saved), "")
	t.add("write a file of 1 MiB and flush it and its name, p50 and p99", "the file system", halves(written), "")
	return nil
}

func (s *server) put(document string, token int64, data []byte) error {
	return s.putAs("bench", document, token, data)
}

// putAs saves under the lock of one of many sessions.
func (s *server) putAs(secret, document string, token int64, data []byte) error {
	request, err := http.NewRequest("PUT", s.base+"/api/documents/"+document+"/content", bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set(remote.HeaderToken, strconv.FormatInt(token, 10))
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("a save was answered with %s", response.Status)
	}
	return nil
}

// flushed replaces a file as durably as the server does.
func flushed(path string, data []byte) error {
	file, err := os.Create(path + ".tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
