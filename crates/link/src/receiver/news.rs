//! What a run of the sender is told: answers, credit, refusals, fences, STORED and HEARD.

use super::{Fence, Receiver, RunView};
use crate::carried::{AliasNumber, Carried, Item, News};
use core::time::Duration;
use stayfast_frame::{Frame, Stored, StoredKind, Writer};
use stayfast_store::Position;
use stayfast_units::{RunId, Time};

impl Receiver {
    /// When news for this run must leave on its own, if there is any.
    pub(crate) fn news_at(&self, view: &RunView) -> Option<Time> {
        if !view.has_news() {
            return None;
        }
        let urgent = !view.answers.is_empty()
            || view.streams.iter().any(|seen| {
                let idle = seen.incoming.is_some_and(|i| self.streams[i].held() == 0);
                seen.credit_due || seen.fenced_due || seen.refused_due || (seen.stored_due && idle && !view.more)
            });
        Some(if urgent { Time::ZERO } else { view.quiet_until })
    }

    /// Writes what this run should know.
    pub(crate) fn fill(
        &mut self,
        now: Time,
        run: RunId,
        view: &mut RunView,
        quarter_rtt: Duration,
        w: &mut Writer<'_>,
        carried: &mut Carried,
    ) {
        while let Some((alias, nonce, at)) = view.answers.front().copied() {
            if w.put(&Frame::Answer { nonce, alias, next: at.next, lineage: at.lineage }).is_err() {
                return;
            }
            view.answers.pop_front();
        }
        let quiet_until = view.quiet_until;
        for seen in &mut view.streams {
            let alias = seen.alias;
            let mut say = |due: &mut bool, news: News, frame: Frame<'_>| {
                if *due && carried.has_room(1) && w.put(&frame).is_ok() {
                    *due = false;
                    carried.push(Item::News { run, alias, news });
                }
            };
            if let Some((number, reason)) = seen.refused {
                say(&mut seen.refused_due, News::Refused, Frame::Refused { alias, number, reason });
            }
            let Some(stream) = seen.incoming.map(|i| &self.streams[i]) else { continue };
            if let Some(Fence { number, theirs, yours }) = seen.fenced {
                say(&mut seen.fenced_due, News::Fenced, Frame::Fenced { alias, number, theirs, yours });
            }
            let Position { next, lineage } = stream.cursor;
            let pool = self.granted as u64;
            say(&mut seen.credit_due, News::Credit, Frame::Credit { link: pool, alias, from: next, bytes: pool });
            let stored = Stored { alias, next, lineage, level: self.level as u8, kind: StoredKind::Record };
            // It asks for an acknowledgement, in a packet that without it would ask for none.
            if !view.more || quiet_until <= now {
                if seen.stored_due {
                    view.quiet_until = now + quarter_rtt;
                }
                say(&mut seen.stored_due, News::Stored, Frame::Stored(stored));
            }
        }
    }

    /// HEARD rides along with an acknowledgement; a lost one is made good by the next.
    pub(crate) fn fill_heard(&mut self, view: &mut RunView, w: &mut Writer<'_>) {
        for seen in &mut view.streams {
            let Some(next) = seen.incoming.map(|i| self.streams[i].bytes.next()) else { continue };
            if next > seen.heard && w.put(&Frame::Heard { alias: seen.alias, next }).is_ok() {
                seen.heard = next;
            }
        }
    }

    /// News that was lost is due again, as it stands then.
    pub(crate) fn on_lost(&mut self, view: &mut RunView, alias: AliasNumber, news: News) {
        let Some(seen) = view.aliases.get(&alias).map(|a| a.stream) else { return };
        let seen = &mut view.streams[seen];
        match news {
            News::Stored => seen.stored_due = true,
            News::Credit => seen.credit_due = true,
            News::Fenced => seen.fenced_due = true,
            News::Refused => seen.refused_due = true,
        }
    }
}
