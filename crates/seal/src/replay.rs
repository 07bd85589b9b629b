//! Which packets of a session were opened before (RFC 4303, section 3.4.3; RFC 6479).

/// Packets that the window tells apart.
pub(crate) const WINDOW: u64 = 4096;

/// One bit for each of the newest 4,096 numbers; what is older counts as seen.
pub(crate) struct Window {
    largest: u64,
    bits: [u64; (WINDOW / 64) as usize],
}

impl Window {
    /// Ends at `first`, in which nothing was seen yet, not even that.
    pub fn new(first: u64) -> Window {
        Window { largest: first, bits: [0; _] }
    }

    /// The largest number seen, or the one it began with.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Notes that `number` was seen. `false` if it was before, or is too old to tell.
    pub fn insert(&mut self, number: u64) -> bool {
        if number <= self.largest {
            return self.largest - number < WINDOW && self.set(number);
        }
        if number - self.largest >= WINDOW {
            self.bits.fill(0);
        } else {
            (self.largest + 1..=number).for_each(|number| self.clear(number));
        }
        self.largest = number;
        self.set(number)
    }

    fn set(&mut self, number: u64) -> bool {
        let (word, bit) = place(number);
        let was = self.bits[word] & bit;
        self.bits[word] |= bit;
        was == 0
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.bits[word] &= !bit;
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn the_window_has_sharp_edges() {
        let mut window = Window::new(10_000);
        assert!(window.insert(10_000));
        assert!(!window.insert(10_000));
        assert!(window.insert(10_000 - WINDOW + 1));
        assert!(!window.insert(10_000 - WINDOW + 1), "seen");
        assert!(!window.insert(10_000 - WINDOW), "too old to tell");
        assert!(window.insert(10_001));
        assert!(!window.insert(10_001 - WINDOW), "fell out when the window moved");
        assert!(window.insert(10_001 + WINDOW), "all of the old window is gone");
        assert!(!window.insert(10_001));
        assert!(window.insert(10_002));
    }

    #[test]
    fn agrees_with_a_set_of_all_numbers() {
        bolero::check!().with_arbitrary::<std::vec::Vec<i16>>().with_iterations(2_000).for_each(|steps| {
            let first = 1 << 20;
            let (mut window, mut seen, mut at) = (Window::new(first), BTreeSet::from([first]), first);
            assert!(window.insert(first));
            for step in steps {
                at = at.saturating_add_signed(i64::from(*step) / 4);
                let largest = *seen.last().unwrap();
                let fresh = at + WINDOW > largest && seen.insert(at);
                assert_eq!(window.insert(at), fresh);
                assert_eq!(window.largest(), *seen.last().unwrap());
            }
        });
    }
}
