use stayfast_units::{RecordNumber, RunId, StreamId};

/// A sender's short number for one stream in one lineage.
pub(crate) type AliasNumber = u32;

/// One thing a packet carried, small enough to be remembered for every packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// `count` whole records of a stream from `first` on; holes (gaps, tombstones) count as records.
    Records { stream: StreamId, first: RecordNumber, count: u16 },
    /// Bytes of one record.
    Part { stream: StreamId, number: RecordNumber, offset: u32, len: u32 },
    /// OPEN and ORIGIN of an alias.
    Open { alias: AliasNumber },
    /// An ACK to `run` up to packet `largest`.
    Ack { run: RunId, largest: u64 },
    /// News for `run` about one of its streams.
    News { run: RunId, alias: AliasNumber, news: News },
}

/// What a receiver tells a sender about a stream. The latest state is told again when a packet is lost,
/// never the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Stored,
    Credit,
    Fenced,
    Refused,
}

/// What one packet carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    items: [Option<Item>; Carried::MAX],
    /// The packet goes to a run that may know nothing yet (an INIT): every alias in it is opened.
    pub(crate) introduces: bool,
    /// It left with an ECN mark.
    pub(crate) marked: bool,
}

impl Carried {
    /// Items a packet may carry; a packet that has them is full whatever its bytes.
    pub(crate) const MAX: usize = 6;

    pub(crate) const fn new(introduces: bool) -> Carried {
        Carried { items: [None; Carried::MAX], introduces, marked: false }
    }

    /// Room for `n` more items?
    pub(crate) fn has_room(&self, n: usize) -> bool {
        self.items[Carried::MAX - n].is_none()
    }

    /// Remembers an item. Callers ask [`has_room`](Carried::has_room) before they write the frame.
    pub(crate) fn push(&mut self, item: Item) {
        let free = self.items.iter_mut().find(|slot| slot.is_none());
        debug_assert!(free.is_some(), "has_room was not asked");
        if let Some(slot) = free {
            *slot = Some(item);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Item> + '_ {
        self.items.iter().map_while(|item| *item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ends_at_the_bound() {
        let mut carried = Carried::new(false);
        for n in 0..Carried::MAX {
            assert!(carried.has_room(1));
            assert_eq!(carried.iter().count(), n);
            carried.push(Item::Open { alias: 0 });
        }
        assert!(!carried.has_room(1));
    }
}
