//! What becomes of a packet, told to whom it concerns.

use crate::carried::{Carried, Item};
use crate::receiver::Receiver;
use crate::runs::Runs;
use crate::sender::Sender;
use stayfast_pmtud::Search;
use stayfast_recovery::{Outcome, Sent};
use stayfast_units::Time;

/// Tells the two halves what became of what a packet carried, and the search what became of its size.
pub(crate) fn settle(
    now: Time,
    outcome: Outcome,
    sent: &Sent<Carried>,
    search: &mut Search,
    sender: &mut Option<Sender>,
    receiver: &mut Receiver,
    runs: &mut Runs,
) {
    told(search, now, outcome, sent);
    for item in sent.carried.iter() {
        match (outcome, item) {
            (Outcome::Acked | Outcome::Late, Item::Ack { run, largest }) => {
                if let Some(run) = runs.get(run) {
                    run.acks.confirmed(largest, sent.time);
                }
            }
            (Outcome::Lost, Item::News { .. }) => lost_news(runs, receiver, sent),
            (Outcome::Acked | Outcome::Late, item) => {
                if let Some(sender) = sender {
                    sender.on_acked(sent.number.0, item, outcome == Outcome::Late);
                }
            }
            (Outcome::Lost, item) => {
                if let Some(sender) = sender {
                    sender.on_lost(sent.number.0, item);
                }
            }
            (Outcome::Gone, _) => {}
        }
    }
}

fn lost_news(runs: &mut Runs, receiver: &mut Receiver, sent: &Sent<Carried>) {
    for item in sent.carried.iter() {
        if let Item::News { run, alias, news } = item
            && let Some(run) = runs.get(run)
        {
            receiver.on_lost(&mut run.view, alias, news);
        }
    }
}

/// Tells the search what became of a packet.
fn told(search: &mut Search, now: Time, outcome: Outcome, sent: &Sent<Carried>) {
    match (outcome, sent.size_probe) {
        (Outcome::Acked | Outcome::Late, true) => search.on_probe_acked(now, sent.bytes, sent.time),
        (Outcome::Acked | Outcome::Late, false) => search.on_acked(sent.bytes, sent.time),
        (Outcome::Lost, true) => search.on_probe_lost(now, sent.bytes, sent.time),
        (Outcome::Gone, false) => search.on_gone(now, sent.bytes, sent.time),
        (Outcome::Lost, false) | (Outcome::Gone, true) => {}
    }
}
