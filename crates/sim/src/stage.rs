use crate::account::{Account, Fate};
use crate::chance::Dice;
use crate::gilbert::Gilbert;
use crate::hold::{Crowd, Line};
use crate::path::Packet;
use crate::police::Policer;
use crate::profile::Profile;
use crate::server::Server;
use crate::{Bleach, Deviation, Discipline, Ecn, Element, Probability};
use alloc::boxed::Box;
use core::time::Duration;
use stayfast_units::Time;

/// An element on a path: its parameters, its state and its dice.
#[derive(Debug)]
pub(crate) struct Stage {
    kind: Kind,
    dice: Dice,
}

#[derive(Debug)]
enum Kind {
    Loss(Probability),
    BurstLoss(Gilbert),
    LoseNext(u32),
    Duplicate(Probability),
    Corrupt(Probability),
    Mtu(u64),
    Bleach(Bleach),
    Policer(Policer),
    Late(Deviation, Crowd),
    Early(Deviation, Crowd),
    Jitter(Duration, Crowd),
    OrderedJitter(Duration, Line),
    Delay(Duration, Line),
    Rate(Box<Server>),
    Outage(bool),
}

/// What happens to a packet that meets a stage.
pub(crate) enum Verdict {
    /// It goes on at once.
    Pass,
    /// It goes on, and a copy behind it.
    Copy,
    /// It does not go on.
    Drop(Fate),
    /// It waits here: [`Stage::hold`] is to be called.
    Hold,
}

impl Stage {
    pub(crate) fn new(element: Element) -> Stage {
        let kind = match element {
            Element::Loss(probability) => Kind::Loss(probability),
            Element::BurstLoss(probability, length) => Kind::BurstLoss(Gilbert::new(probability, length)),
            Element::LoseNext(count) => Kind::LoseNext(count),
            Element::Duplicate(probability) => Kind::Duplicate(probability),
            Element::Corrupt(probability) => Kind::Corrupt(probability),
            Element::Mtu(bytes) => Kind::Mtu(bytes),
            Element::Bleach(bleach) => Kind::Bleach(bleach),
            Element::Policer(rate, burst) => Kind::Policer(Policer::new(rate, burst)),
            Element::Late(deviation) => Kind::Late(deviation, Crowd::default()),
            Element::Early(deviation) => Kind::Early(deviation, Crowd::default()),
            Element::Jitter(most) => Kind::Jitter(most, Crowd::default()),
            Element::OrderedJitter(most) => Kind::OrderedJitter(most, Line::default()),
            Element::Delay(delay) => Kind::Delay(delay, Line::default()),
            Element::Rate(rate, limit) => Kind::Rate(Box::new(Server::new(rate, limit, Discipline::DropTail))),
            Element::Bottleneck(rate, limit, discipline) => Kind::Rate(Box::new(Server::new(rate, limit, discipline))),
            Element::Outage(on) => Kind::Outage(on),
        };
        Stage { kind, dice: Dice::new(0, "", "", 0) }
    }

    /// Takes the parameters if `element` is of this kind.
    pub(crate) fn set(&mut self, now: Time, element: Element) -> bool {
        match (&mut self.kind, element) {
            (Kind::Loss(old), Element::Loss(new)) => *old = new,
            (Kind::BurstLoss(gilbert), Element::BurstLoss(loss, length)) => gilbert.set(loss, length),
            (Kind::LoseNext(old), Element::LoseNext(new)) => *old = new,
            (Kind::Duplicate(old), Element::Duplicate(new)) => *old = new,
            (Kind::Corrupt(old), Element::Corrupt(new)) => *old = new,
            (Kind::Mtu(old), Element::Mtu(new)) => *old = new,
            (Kind::Bleach(old), Element::Bleach(new)) => *old = new,
            (Kind::Policer(policer), Element::Policer(rate, burst)) => policer.set(now, rate, burst),
            (Kind::Late(old, _), Element::Late(new)) => *old = new,
            (Kind::Early(old, _), Element::Early(new)) => *old = new,
            (Kind::Jitter(old, _), Element::Jitter(new)) => *old = new,
            (Kind::OrderedJitter(old, _), Element::OrderedJitter(new)) => *old = new,
            (Kind::Delay(old, _), Element::Delay(new)) => *old = new,
            (Kind::Rate(server), Element::Rate(rate, limit)) => server.set(now, rate, limit),
            (Kind::Rate(server), Element::Bottleneck(rate, limit, discipline)) => {
                return server.set_all(now, rate, limit, discipline);
            }
            (Kind::Outage(old), Element::Outage(new)) => *old = new,
            _ => return false,
        }
        true
    }

    /// Has a bottleneck's rate follow a profile; false for other elements.
    pub(crate) fn follow(&mut self, now: Time, profile: Option<&Profile>) -> bool {
        match &mut self.kind {
            Kind::Rate(server) => server.follow(now, profile.cloned()),
            _ => return false,
        }
        true
    }

    /// The name of its kind, under which it throws its dice.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Loss(_) => "loss",
            Kind::BurstLoss(_) => "burst loss",
            Kind::LoseNext(_) => "lose next",
            Kind::Duplicate(_) => "duplicate",
            Kind::Corrupt(_) => "corrupt",
            Kind::Mtu(_) => "mtu",
            Kind::Bleach(_) => "bleach",
            Kind::Policer(_) => "policer",
            Kind::Late(..) => "late",
            Kind::Early(..) => "early",
            Kind::Jitter(..) => "jitter",
            Kind::OrderedJitter(..) => "ordered jitter",
            Kind::Delay(..) => "delay",
            Kind::Rate(_) => "rate",
            Kind::Outage(_) => "outage",
        }
    }

    pub(crate) fn throws(&mut self, dice: Dice) {
        self.dice = dice;
    }

    /// What happens to a packet that arrives now; it may be changed.
    pub(crate) fn meet(&mut self, now: Time, packet: &mut Packet, account: &mut Account) -> Verdict {
        let (dice, ordinal) = (self.dice, packet.ordinal);
        let datagram = &mut packet.datagram;
        let drop_if = |it: bool, fate| if it { Verdict::Drop(fate) } else { Verdict::Pass };
        match &mut self.kind {
            Kind::Loss(probability) => drop_if(dice.hit(ordinal, *probability), Fate::Lost),
            Kind::BurstLoss(gilbert) => drop_if(gilbert.loses(dice, ordinal), Fate::Lost),
            Kind::LoseNext(count) => {
                let lost = *count > 0;
                *count -= u32::from(lost);
                drop_if(lost, Fate::Lost)
            }
            Kind::Duplicate(probability) if dice.hit(ordinal, *probability) => Verdict::Copy,
            Kind::Duplicate(_) => Verdict::Pass,
            Kind::Corrupt(probability) => {
                if dice.hit(ordinal, *probability) && !datagram.bytes.is_empty() {
                    let bit = dice.second().below(ordinal, datagram.bytes.len() as u64 * 8);
                    datagram.bytes[bit as usize / 8] ^= 1 << (bit % 8);
                    account.stats.corrupted += 1;
                }
                Verdict::Pass
            }
            Kind::Mtu(bytes) => drop_if(datagram.packet_size() > *bytes, Fate::Oversize),
            Kind::Bleach(Bleach::Drop) => drop_if(datagram.ecn != Ecn::NotEct, Fate::Refused),
            Kind::Bleach(Bleach::Clear) => {
                account.stats.bleached += u64::from(datagram.ecn != Ecn::NotEct);
                datagram.ecn = Ecn::NotEct;
                Verdict::Pass
            }
            Kind::Bleach(Bleach::Off) => Verdict::Pass,
            Kind::Policer(policer) => drop_if(!policer.admits(now, datagram.wire_size()), Fate::Policed),
            Kind::Late(deviation, _) => {
                // Whoever is late by nothing does not let a copy of itself pass.
                let late = dice.hit(ordinal, deviation.share) && !deviation.draw(dice, ordinal).is_zero();
                if late { Verdict::Hold } else { Verdict::Pass }
            }
            Kind::Early(deviation, _) if deviation.span().1.is_zero() => Verdict::Pass,
            Kind::Jitter(most, _) if most.is_zero() => Verdict::Pass,
            // Nobody overtakes who still waits since before the time became zero.
            Kind::OrderedJitter(most, line) | Kind::Delay(most, line) if most.is_zero() && line.due().is_none() => {
                Verdict::Pass
            }
            Kind::Outage(on) => drop_if(*on, Fate::Cut),
            Kind::Early(..) | Kind::Jitter(..) | Kind::OrderedJitter(..) | Kind::Delay(..) | Kind::Rate(_) => {
                Verdict::Hold
            }
        }
    }

    /// Keeps a packet that is to wait here; one that finds no room is dropped.
    pub(crate) fn hold(&mut self, now: Time, packet: Packet, account: &mut Account) {
        let (dice, ordinal) = (self.dice, packet.ordinal);
        account.held += 1;
        match &mut self.kind {
            Kind::Late(deviation, crowd) => crowd.push(now + deviation.draw(dice, ordinal), packet),
            Kind::Early(deviation, crowd) => {
                let early = dice.hit(ordinal, deviation.share);
                let earlier = if early { deviation.draw(dice, ordinal) } else { Duration::ZERO };
                crowd.push(now + (deviation.span().1 - earlier), packet);
            }
            Kind::Jitter(most, crowd) => crowd.push(now + dice.within(ordinal, *most), packet),
            Kind::OrderedJitter(most, line) => line.push(now + dice.within(ordinal, *most), packet),
            Kind::Delay(delay, line) => line.push(now + *delay, packet),
            Kind::Rate(server) => server.push(now, packet, dice, account),
            // The others hold nothing.
            _ => account.discard(packet.datagram, Fate::Overflowed),
        }
    }

    /// When something happens here, such as that a packet goes on; [`Time::MAX`] for never.
    pub(crate) fn due(&self) -> Time {
        let due = match &self.kind {
            Kind::Late(_, crowd) | Kind::Early(_, crowd) | Kind::Jitter(_, crowd) => crowd.due(),
            Kind::OrderedJitter(_, line) | Kind::Delay(_, line) => line.due(),
            Kind::Rate(server) => server.due(),
            _ => None,
        };
        due.unwrap_or(Time::MAX)
    }

    /// The packet that goes on at the moment [`Stage::due`] names.
    pub(crate) fn pop(&mut self, account: &mut Account) -> Option<Packet> {
        match &mut self.kind {
            Kind::Late(_, crowd) | Kind::Early(_, crowd) | Kind::Jitter(_, crowd) => crowd.pop(),
            Kind::OrderedJitter(_, line) | Kind::Delay(_, line) => line.pop(),
            Kind::Rate(server) => server.pop(account),
            _ => None,
        }
    }

    /// Datagrams and bytes that wait at a bottleneck.
    pub(crate) fn queued(&self) -> (usize, u64) {
        if let Kind::Rate(server) = &self.kind { server.waiting() } else { (0, 0) }
    }
}

impl Deviation {
    /// Least and most.
    fn span(&self) -> (Duration, Duration) {
        (self.least, self.most.max(self.least))
    }

    /// By how much a datagram deviates that does.
    fn draw(&self, dice: Dice, ordinal: u64) -> Duration {
        let (least, most) = self.span();
        least + dice.second().within(ordinal, most - least)
    }
}
