use crate::account::Account;
use crate::chance::Dice;
use crate::element::Limit;
use crate::path::Packet;
use crate::profile::Profile;
use crate::queue::{Arrival, Discipline, Queue};
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// A bottleneck: one packet is on the wire, the others wait in the queue.
///
/// Work is counted in bytes times 10^9: a packet of n bytes is n x 10^9 of work, and each nanosecond does as much
/// as the rate has bytes per second. All of it is whole numbers, and what the last nanosecond of a packet does
/// beyond its end belongs to the next one: a busy hour carries exactly its rate.
#[derive(Debug)]
pub(crate) struct Server {
    rate: Rate,
    limit: Limit,
    queue: Queue,
    course: Option<Course>,
    wire: Option<Packet>,
    /// Work left of what is on the wire at `since`.
    work: u64,
    since: Time,
    due: Option<Time>,
}

/// A profile that the rate follows.
#[derive(Debug)]
struct Course {
    profile: Profile,
    begun: Time,
    /// When the rate changes next.
    next: Time,
}

impl Server {
    pub(crate) fn new(rate: Rate, limit: Limit, discipline: Discipline) -> Server {
        let queue = Queue::new(discipline);
        Server { rate, limit, queue, course: None, wire: None, work: 0, since: Time::ZERO, due: None }
    }

    /// Takes a packet, which the account already has as held; the queue may drop it, or another one.
    pub(crate) fn push(&mut self, now: Time, packet: Packet, dice: Dice, account: &mut Account) {
        self.catch_up(now);
        let limit = self.wire.as_ref().map(|_| self.limit);
        self.queue.push(Arrival { now, dice, rate: self.rate, limit }, packet, account);
        if self.wire.is_none() {
            self.begin(now, 0, account);
        }
    }

    /// When the packet on the wire has left it, never at rate zero; or when the rate changes, if that is earlier.
    pub(crate) fn due(&self) -> Option<Time> {
        let turn = self.course.as_ref().filter(|_| self.wire.is_some()).map(|course| course.next);
        self.due.into_iter().chain(turn).min()
    }

    /// The packet that leaves the wire at the moment [`Server::due`] names; none if it is the rate that changes.
    pub(crate) fn pop(&mut self, account: &mut Account) -> Option<Packet> {
        let turn = self.course.as_ref().map(|course| course.next);
        if let Some(turn) = turn.filter(|turn| self.due.is_none_or(|due| *turn < due)) {
            self.catch_up(turn);
            return None;
        }
        let done = self.due.take()?;
        let packet = self.wire.take()?;
        let rate = self.rate.bytes_per_sec();
        self.begin(done, (rate - self.work % rate) % rate, account);
        Some(packet)
    }

    /// Changes rate and limit. The packet on the wire keeps what has been done of it; what waits beyond a lower
    /// limit stays.
    pub(crate) fn set(&mut self, now: Time, rate: Rate, limit: Limit) {
        self.catch_up(now);
        self.limit = limit;
        self.set_rate(now, rate);
    }

    /// From now on the rate follows a profile from its beginning, or stays as it is.
    pub(crate) fn follow(&mut self, now: Time, profile: Option<Profile>) {
        self.catch_up(now);
        self.course = profile.map(|profile| Course { profile, begun: now, next: now });
        self.catch_up(now);
    }

    /// While the wire is free nobody is told that the rate has changed.
    fn catch_up(&mut self, now: Time) {
        let Some(course) = self.course.as_mut().filter(|course| course.next <= now) else { return };
        let (rate, left) = course.profile.step_at(now - course.begun);
        course.next = now + left;
        self.set_rate(now, rate);
    }

    fn set_rate(&mut self, now: Time, rate: Rate) {
        let done = self.rate.bytes_per_sec().saturating_mul((now - self.since).as_nanos() as u64);
        self.rate = rate;
        if self.wire.is_some() {
            self.serve(now, self.work.saturating_sub(done));
        }
    }

    /// Changes the discipline's parameters as well; false, and nothing is changed, if it has another discipline.
    pub(crate) fn set_all(&mut self, now: Time, rate: Rate, limit: Limit, discipline: Discipline) -> bool {
        let same = self.queue.set(discipline);
        if same {
            self.set(now, rate, limit);
        }
        same
    }

    /// Datagrams and bytes that wait, without the one on the wire.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        self.queue.waiting()
    }

    /// Puts the next packet on the wire, of which so much has been done.
    fn begin(&mut self, now: Time, done: u64, account: &mut Account) {
        self.wire = self.queue.pop(now, account);
        if let Some(packet) = &self.wire {
            let work = work_of(packet.datagram.wire_size());
            self.serve(now, work.saturating_sub(done));
        }
    }

    fn serve(&mut self, now: Time, work: u64) {
        (self.since, self.work) = (now, work);
        self.due = match self.rate.bytes_per_sec() {
            0 => None,
            rate => Some(now + Duration::from_nanos(work.div_ceil(rate))),
        };
    }
}

/// A datagram has at most 65,535 bytes in reality; a longer one made up by a test saturates.
fn work_of(size: u64) -> u64 {
    size.saturating_mul(1_000_000_000)
}
