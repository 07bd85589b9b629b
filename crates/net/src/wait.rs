//! Sleeping until something happens or a time has come, to the nanosecond where the system can.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What to sleep on.
pub(crate) struct Source<'a> {
    pub fd: BorrowedFd<'a>,
    /// Wake also when it can be written to.
    pub writable: bool,
}

/// Sleeps until one of `sources` is ready, or for `timeout`; without one, for as long as it takes. True if a source is
/// ready (or may be: after an error there is no way to know).
///
/// `ppoll`, with a handful of descriptors: one system call, where `epoll` with a timer needs four. Linux takes the
/// timeout in nanoseconds; macOS has whole milliseconds only, which the pacer makes good within its burst.
pub(crate) fn wait(sources: &[Source<'_>], timeout: Option<Duration>) -> bool {
    let flags = |source: &Source<'_>| PollFlags::IN | if source.writable { PollFlags::OUT } else { PollFlags::empty() };
    let mut fds: Vec<PollFd<'_>> = sources.iter().map(|s| PollFd::from_borrowed_fd(s.fd, flags(s))).collect();
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(ready) => ready > 0,
        Err(Errno::INTR) => true,
        Err(error) => {
            // Out of memory, perhaps: better slow than busy.
            tracing::warn!(%error, "the sockets cannot be waited for");
            std::thread::sleep(Duration::from_millis(1));
            true
        }
    }
}

/// The kernel may wake a thread 50 us late to save power, unless told otherwise; pacing needs better.
pub(crate) fn precise_timers() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        tracing::debug!(%error, "timers stay coarse");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bell::Bell;
    use crate::clock::{Clock, between};
    use crate::socket::{Datagrams, Socket};
    use crate::udp::Udp;
    use stayfast_pacer::Pacer;
    use stayfast_units::{Rate, Time};
    use std::net::SocketAddr;
    use std::os::fd::AsFd;

    /// Sends full datagrams at `rate` for two seconds. Returns the bytes sent, those that a perfect clock would have
    /// sent, and the number of bursts. When the machine takes the processor away for longer than a burst may make
    /// good, no timer can help: that time does not count.
    fn pace(rate: Rate, socket: &mut Udp, to: SocketAddr) -> (u64, u64, u64) {
        let (clock, mut pacer, packet) = (Clock::start(), Pacer::new(), [0; 1_200]);
        let bell = Bell::new().unwrap();
        let (mut bytes, mut bursts, mut stolen, mut due) = (0, 0, Duration::ZERO, Time::ZERO);
        loop {
            let now = clock.now();
            stolen += between(due, now).saturating_sub(stayfast_pacer::BURST);
            if now >= Time::from_millis(2_000) {
                return (bytes, rate.bytes_in(between(Time::ZERO, now) - stolen), bursts);
            }
            let at = pacer.next_send(now, rate);
            due = at.max(now);
            if at > now {
                wait(&[Source { fd: bell.as_fd(), writable: false }], Some(between(now, at)));
                continue;
            }
            bursts += 1;
            while pacer.budget(now, rate, 1_200) >= 1_200 {
                socket.send(&Datagrams { to, from: None, bytes: &packet, segment: 1_200, ecn: 0 }).unwrap();
                pacer.spend(now, rate, 1_200);
                bytes += 1_200;
            }
        }
    }

    // Report 10 of docs/reports.md.
    #[test]
    fn a_rate_is_held_below_a_millisecond() {
        precise_timers();
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let (sink, mut socket) = (Udp::bind(loopback).unwrap(), Udp::bind(loopback).unwrap());
        let (bytes, wanted, bursts) = pace(Rate::from_bits_per_sec(100_000_000), &mut socket, sink.local_address());
        assert!(bytes.abs_diff(wanted) <= wanted * 3 / 100, "{bytes} B, not {wanted} B");
        // A datagram is due every 96 us. A timer of whole milliseconds would send ten at a time.
        assert!(bytes / bursts < 6_000, "{} B a burst", bytes / bursts);
    }
}
