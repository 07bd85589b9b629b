//! What becomes of a path's knowledge when the peer is heard from elsewhere (RFC 9000, 9.4).

use crate::peer::Peer;
use crate::size::{controller, largest};
use core::net::SocketAddr;
use stayfast_frame::Seal;
use stayfast_pacer::Pacer;
use stayfast_units::Time;

impl<S: Seal> Peer<S> {
    /// The peer is at `to` now. Another port is the same path behind the same translator.
    pub(crate) fn path_moved(&mut self, now: Time, from: Option<SocketAddr>, to: SocketAddr) {
        if from.map(|from| from.ip()) == Some(to.ip()) {
            return;
        }
        self.search.on_path_changed(now, largest(&self.config, Some(to)));
        self.ecn.restart();
        if self.ledger.rtt().is_measured() {
            self.forget_path(now);
        }
        self.resized();
    }

    /// RFC 9000, 9.4: "Packets sent on the old path MUST NOT contribute to congestion control or RTT estimation for the
    /// new path." They count as never sent, so what they carried goes again at once.
    fn forget_path(&mut self, now: Time) {
        let first = self.ledger.outstanding().next().map(|sent| sent.number.0);
        let last = self.ledger.outstanding().last().map(|sent| sent.number.0);
        if let (Some(first), Some(last)) = (first, last) {
            self.unsent(now, first, last);
        }
        self.ledger.path_changed();
        self.congestion = controller(&self.config, now, self.path.current());
        self.pacer = Pacer::new();
    }
}
