package buffer

import "testing"

func TestGetHasRoom(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 4095, 4096, 4097, 1 << 20, 1<<20 + 1, 64 << 20, 64<<20 + 1} {
		b := Get(n)
		if len(*b) != 0 || cap(*b) < n {
			t.Errorf("Get(%d): got length %d, capacity %d", n, len(*b), cap(*b))
		}
		*b = append(*b, 1)
		Put(b)
	}
}

// A buffer that grew elsewhere is lent for what it has room for, not for more.
func TestPutOfOtherSizes(t *testing.T) {
	for _, n := range []int{0, 100, 5000, 9000, 70 << 20} {
		b := make([]byte, n)
		Put(&b)
	}
	for range 10 {
		if b := Get(8192); cap(*b) < 8192 {
			t.Fatalf("got capacity %d, want 8192 at least", cap(*b))
		}
	}
}
