package sessions

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"Ann", "Åsa Öberg", "山田 太郎", "👩", "❤️", "❤\ufe0e", "葛\U000e0100城", strings.Repeat("猫", 64)} {
		assert.NoError(t, CheckName(name), "%q", name)
		assert.Equal(t, name, Clean(name))
	}
	for _, name := range []string{
		"", " ", "\u3164", "\u2800", "\ufe0f", "Ann\u200b", "\u202eAnn", "A\u2066nn", "Ann\ufeff", "Ann\u00ad", "A\u034fnn", "Ann\n",
		"\xff", strings.Repeat("x", 65), "\u115f\u1160", "\ufe00", "\ufe0e \ufe0f", "\U000e0100", "Ann\U00016fe4", "\U0001d159",
	} {
		assert.ErrorIs(t, CheckName(name), ErrName, "%q", name)
	}
	assert.Equal(t, "Ann", Clean("\u202eA\u200bnn\n"))
	assert.Empty(t, Clean("\ufe0f"))
}

// Two turns forget a key; one that goes on asking keeps its bucket.
func TestLimiterForgetsWhoDoesNotAsk(t *testing.T) {
	l, now := NewLimiter(1e-9, 1), time.Now()
	_, ok := l.Allow("ann", now)
	assert.True(t, ok)
	for range 5 {
		now = now.Add(idleAge + time.Second)
		_, ok = l.Allow("ann", now)
		assert.False(t, ok, "its bucket is empty")
		assert.True(t, l.Known("ann"))
	}
	for i := range 3 {
		now = now.Add(idleAge + time.Second)
		l.Allow("bob", now)
		assert.Equal(t, i == 0, l.Known("ann"))
	}
}

// A flood of made-up keys costs bounded memory, and each request the same.
func TestLimiterIsBounded(t *testing.T) {
	l, now := NewLimiter(1, 1), time.Now()
	for i := range 3*maxKeys + 10 {
		l.Allow(string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}), now)
	}
	assert.LessOrEqual(t, len(l.recent)+len(l.former), 2*maxKeys)
}

// A request that counts as many takes the whole burst. Otherwise it would never be allowed.
func TestTheLargestRequestTakesTheBurst(t *testing.T) {
	for _, burst := range []int{1, 10} {
		l, now := NewLimiter(1, burst), time.Now()
		for range 2 {
			_, ok := l.Allow("ann", now)
			assert.True(t, ok)
			_, ok = l.AllowMore("ann", now, 50)
			assert.True(t, ok)
			_, ok = l.Allow("ann", now)
			assert.False(t, ok)
			now = now.Add(time.Minute)
		}
	}
}

func BenchmarkLimiter(b *testing.B) {
	for _, keys := range []int{100, 2 * maxKeys} {
		b.Run(string(rune('0'+keys/maxKeys))+"00k", func(b *testing.B) {
			l, now := NewLimiter(1, 1), time.Now()
			for i := range keys {
				l.Allow(string([]byte{byte(i), byte(i >> 8), byte(i >> 16)}), now)
			}
			for b.Loop() {
				l.Allow("ann", now)
			}
		})
	}
}
