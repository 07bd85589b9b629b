use alloc::vec::Vec;
use core::net::SocketAddr;
use stayfast_units::PacketNumber;

/// Where packets to the peer go.
#[derive(Debug, Default)]
pub(crate) struct Path {
    /// The source of the newest bound packet.
    validated: Option<SocketAddr>,
    newest: Option<PacketNumber>,
    configured: Vec<SocketAddr>,
    turn: usize,
}

impl Path {
    pub(crate) fn new(configured: Vec<SocketAddr>) -> Path {
        Path { configured, ..Path::default() }
    }

    /// True if these are others than before.
    pub(crate) fn configure(&mut self, addresses: Vec<SocketAddr>) -> bool {
        if self.configured == addresses {
            return false;
        }
        self.configured = addresses;
        self.turn = 0;
        true
    }

    /// A bound packet came. The path moves only for the newest so far; true if it moved.
    pub(crate) fn heard(&mut self, from: SocketAddr, number: PacketNumber) -> bool {
        if self.newest.is_some_and(|newest| number <= newest) {
            return false;
        }
        self.newest = Some(number);
        self.validated.replace(from) != Some(from)
    }

    /// Another run counts its packets anew.
    pub(crate) fn run_changed(&mut self) {
        self.newest = None;
    }

    pub(crate) fn is_validated(&self, address: SocketAddr) -> bool {
        self.validated == Some(address)
    }

    /// Where bound packets go.
    pub(crate) fn current(&self) -> Option<SocketAddr> {
        self.validated.or_else(|| self.configured.get(self.turn % self.configured.len().max(1)).copied())
    }

    /// Where an INIT goes: the addresses take turns once the one in use is in doubt.
    pub(crate) fn init(&self) -> Option<SocketAddr> {
        let known = usize::from(self.validated.is_some());
        match self.turn % (self.configured.len() + known).max(1) {
            0 if known == 1 => self.validated,
            turn => self.configured.get(turn - known).copied(),
        }
    }

    /// Nobody answered at the address in turn.
    pub(crate) fn next_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Somebody answered.
    pub(crate) fn answered(&mut self) {
        self.turn = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn inits_go_round_all_addresses() {
        let mut path = Path::new(alloc::vec![at(1), at(2)]);
        let mut turns = || {
            let to = path.init();
            path.next_turn();
            to
        };
        assert_eq!([turns(), turns(), turns()], [Some(at(1)), Some(at(2)), Some(at(1))]);
        path.answered();
        assert!(path.heard(at(3), PacketNumber(0)));
        let mut turns = || {
            let to = path.init();
            path.next_turn();
            to
        };
        assert_eq!([turns(), turns(), turns()], [Some(at(3)), Some(at(1)), Some(at(2))]);
    }

    #[test]
    fn an_older_packet_does_not_move_the_path() {
        let mut path = Path::default();
        assert!(path.heard(at(1), PacketNumber(5)));
        assert!(!path.heard(at(2), PacketNumber(4)));
        assert_eq!(path.current(), Some(at(1)));
        assert!(path.heard(at(2), PacketNumber(6)));
    }

    #[test]
    fn no_address_is_no_panic() {
        let mut path = Path::default();
        path.next_turn();
        assert_eq!((path.current(), path.init()), (None, None));
    }
}
