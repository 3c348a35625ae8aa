package lru

import "testing"

func TestLeastRecentlyUsedGoes(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Get("a")
	c.Put("c", 3, 4) // b goes
	c.Put("a", 4, 5) // in place of the old
	for key, want := range map[string]int{"a": 4, "b": 0, "c": 3} {
		got, ok := c.Get(key)
		if got != want || ok != (want != 0) {
			t.Errorf("%s: got %d, %v, want %d", key, got, ok, want)
		}
	}
	c.Put("huge", 5, 11)
	if _, ok := c.Get("huge"); ok {
		t.Error("what is larger than the cache was kept")
	}
	c.Put("d", 6, 10)
	c.Remove("d")
	if _, ok := c.Get("d"); ok || c.size != 0 || c.order.Len() != 0 {
		t.Errorf("after all went: size %d, %d values", c.size, c.order.Len())
	}
}
