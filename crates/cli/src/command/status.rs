use crate::ages::Ages;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::human;
use crate::output::{Format, Paint, table};
use crate::progress::no_answer;
use serde_json::{Value, json};
use stayfast::{Figures, Gaps};
use stayfast_store::{Cursor, Outbox};
use stayfast_store_sqlite::StreamInfo;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A link that has noted its figures within this time is taken to be running.
const RUNNING: u64 = 3;
/// A peer that was not heard for so long, while something waits, does not answer.
const SILENT: u64 = 5;

/// Say how a link is doing, from the file of its outbox
///
/// Of an inbox it says how far the streams of each sender are stored.
///
/// Works offline, without the link and without the network: the numbers of records are exact; what the link has
/// measured is as old as its last note, which the output says. Exit code 1 if a stream stands still or has lost
/// records, which is said until `stayfast outbox drop --quarantine`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast status edge.db
  watch -n1 stayfast status edge.db
  stayfast status edge.db --json | jq '.streams[] | select(.waiting > 1000)'")]
pub struct Arguments {
    /// The outbox, or an inbox
    db: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let fail = |e| Failure::store(&self.db, &e);
        let mut outbox = files::outbox_to_read(&self.db)?;
        let streams = outbox.streams().map_err(fail)?;
        let notes: BTreeMap<String, String> = outbox.notes().map_err(fail)?.into_iter().collect();
        let cursors = outbox.cursors().map_err(fail)?;
        if streams.is_empty() && !cursors.is_empty() {
            return self.inbox(cursors);
        }
        let status = Status::new(Ages::now(), streams, &notes);
        self.format.print(&status.json(), &status.text(Paint::stdout()))?;
        status.outcome()
    }
}

impl Arguments {
    /// Says how far each stream is stored here: this is an inbox.
    fn inbox(&self, mut cursors: Vec<Cursor>) -> Outcome {
        cursors.sort_by(|a, b| a.key.cmp(&b.key));
        let row = |c: &Cursor| {
            let Cursor { key, position } = c;
            vec![key.sender.to_string(), key.store.to_string(), key.stream.to_string(), human::count(position.next.0)]
        };
        let json = |c: &Cursor| {
            let Cursor { key, position } = c;
            let store = key.store.to_string();
            json!({ "sender": *key.sender, "store": store, "stream": *key.stream, "stored": position.next.0 })
        };
        let rows: Vec<_> = cursors.iter().map(row).collect();
        let json = json!({ "cursors": cursors.iter().map(json).collect::<Vec<_>>() });
        self.format.print(&json, &table(&["SENDER", "STORE", "STREAM", "STORED"], &rows, Paint::stdout()))
    }
}

struct Status {
    now: u64,
    streams: Vec<Stream>,
    links: Vec<(String, Figures)>,
}

struct Stream {
    info: StreamInfo,
    /// First record not in the receiver's memory, as far as is known.
    heard: u64,
    /// For how long the oldest waiting record has been there, if that was noted.
    oldest: Option<Duration>,
    /// Why it stands still, if a link has noted that.
    trouble: Option<String>,
    /// What was found damaged when it was to be sent.
    gaps: Gaps,
}

impl Status {
    fn new(now: u64, streams: Vec<StreamInfo>, notes: &BTreeMap<String, String>) -> Status {
        let heard = |stream: &StreamInfo| {
            let noted = notes.get(&Figures::heard_key(&stream.name)).and_then(|number| number.parse().ok());
            // Hints may be older than the records.
            noted.unwrap_or(0).clamp(stream.first.0, stream.next.0.max(stream.first.0))
        };
        let oldest = |stream: &StreamInfo| {
            let ages = notes.get(&Ages::key(&stream.name)).map(|text| Ages::parse(text))?;
            ages.of(stream.first.0, now).filter(|_| stream.records() > 0)
        };
        let gaps = Gaps::all(notes);
        let trouble = |name: &str| notes.get(&Figures::trouble_key(name)).filter(|text| !text.is_empty()).cloned();
        let stream = |info: StreamInfo| Stream {
            heard: heard(&info),
            oldest: oldest(&info),
            trouble: trouble(&info.name),
            gaps: gaps.get(&info.name).cloned().unwrap_or_default(),
            info,
        };
        let prefix = Figures::key("");
        let link =
            |(key, text): (&String, &String)| Some((key.strip_prefix(&prefix)?.to_string(), Figures::parse(text)?));
        Status {
            now,
            streams: streams.into_iter().map(stream).collect(),
            links: notes.iter().filter_map(link).collect(),
        }
    }

    /// An error if somebody has to do something.
    fn outcome(&self) -> Outcome {
        let names = |of: fn(&Stream) -> bool| {
            let names: Vec<_> = self.streams.iter().filter(|s| of(s)).map(|s| format!("'{}'", s.info.name)).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let still = names(|stream| stream.trouble.is_some()).map(|names| format!("stands still: {names}"));
        let lossy = names(|stream| stream.gaps.count() > 0).map(|names| format!("has lost records: {names}"));
        let wrong: Vec<_> = still.into_iter().chain(lossy).collect();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Failure::failed(wrong.join("; "))),
        }
    }

    fn waiting(&self) -> u64 {
        self.streams.iter().map(|stream| stream.info.records()).sum()
    }

    /// How long ago that was, or why nobody can say.
    fn ago(&self, then: u64) -> Result<Duration, &'static str> {
        self.now.checked_sub(then).map(Duration::from_secs).ok_or("at a time still to come by this clock")
    }

    /// For how long the peer has not answered a link that was trying.
    fn silence(&self, figures: &Figures) -> Option<Duration> {
        let silent = figures.written.saturating_sub(figures.last_heard);
        let tried = self.waiting() > 0 && figures.packets > 0;
        (tried && figures.last_heard > 0 && silent >= SILENT).then(|| Duration::from_secs(silent))
    }

    fn text(&self, paint: Paint) -> String {
        let row = |Stream { info, heard, oldest, .. }: &Stream| {
            let numbers = [info.next.0, *heard, info.first.0, info.records()].map(human::count);
            let oldest = oldest.map_or("-".to_string(), human::duration);
            [info.name.clone()].into_iter().chain(numbers).chain([human::bytes(info.bytes), oldest]).collect()
        };
        let rows: Vec<_> = self.streams.iter().map(row).collect();
        let mut lines = vec![table(&["STREAM", "PUT", "HEARD", "STORED", "WAITING", "SIZE", "OLDEST"], &rows, paint)];
        for Stream { info, trouble, gaps, .. } in &self.streams {
            let name = &info.name;
            lines.extend(trouble.as_ref().map(|why| paint.red(&format!("stream '{name}' stands still: {why}"))));
            if gaps.count() > 0 {
                let (count, numbers) = (human::records(gaps.count()), human::numbers(&gaps.to_string()));
                lines.push(paint.red(&format!(
                    "stream '{name}': {count} lost, damaged or missing in this outbox: number {numbers}"
                )));
            }
        }
        for (peer, figures) in &self.links {
            lines.push(self.link_text(peer, figures));
            if figures.last_heard == 0 && figures.packets > 0 {
                let text = format!("no answer from {peer} yet; is it running, and is this node's key listed there?");
                lines.push(paint.red(&text));
            } else if let Some(silence) = self.silence(figures) {
                lines.push(paint.red(&no_answer(peer, silence)));
            }
        }
        if self.links.is_empty() {
            lines.push("no link has run on this outbox yet".to_string());
        }
        lines.join("\n")
    }

    fn link_text(&self, peer: &str, figures: &Figures) -> String {
        let noted = self.ago(figures.written);
        let state = match noted {
            Ok(noted) if noted.as_secs() <= RUNNING => "link running".to_string(),
            Ok(noted) => format!("link's last note {} ago", human::duration(noted)),
            Err(why) => format!("link's last note {why}"),
        };
        let at = figures.address.map_or(String::new(), |address| format!(" at {address}"));
        let heard = match figures.last_heard {
            0 => "never heard".to_string(),
            then => match self.ago(then) {
                Ok(ago) => format!("heard {} ago", human::duration(ago)),
                Err(why) => format!("heard {why}"),
            },
        };
        format!(
            "{peer}{at}: {state}, {heard}, RTT {}, window {}, in flight {}; {} packets, {} lost of which {} came late, \
             {} undone; congestion marks (ECN) {}{}",
            human::duration(Duration::from_micros(figures.rtt_us)),
            human::bytes(figures.window),
            human::bytes(figures.in_flight),
            human::count(figures.packets),
            human::count(figures.lost),
            human::count(figures.late),
            human::count(figures.undos),
            figures.ecn,
            if figures.marks > 0 { format!(", {} seen", human::count(figures.marks)) } else { String::new() },
        )
    }

    fn json(&self) -> Value {
        let stream = |Stream { info, heard, oldest, trouble, gaps }: &Stream| {
            json!({
                "stream": info.name, "put": info.next.0, "heard": heard, "stored": info.first.0,
                "waiting": info.records(), "bytes": info.bytes, "oldest_seconds": oldest.map(|age| age.as_secs()),
                "trouble": trouble, "lost": gaps.count(), "lost_numbers": gaps.to_string(),
            })
        };
        let seconds = |then| self.ago(then).ok().map(|ago| ago.as_secs());
        let link = |(peer, f): &(String, Figures)| {
            json!({
                "peer": peer, "address": f.address, "noted_seconds_ago": seconds(f.written),
                "heard_seconds_ago": seconds(f.last_heard).filter(|_| f.last_heard > 0),
                "silent_seconds": self.silence(f).map(|silence| silence.as_secs()), "rtt_us": f.rtt_us,
                "window": f.window, "in_flight": f.in_flight, "packets": f.packets, "lost": f.lost, "late": f.late,
                "undos": f.undos, "bytes_resent": f.resent, "ecn": f.ecn.to_string(), "ecn_marks": f.marks,
            })
        };
        json!({
            "streams": self.streams.iter().map(stream).collect::<Vec<_>>(),
            "links": self.links.iter().map(link).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayfast::Ecn;
    use stayfast_units::RecordNumber;

    fn status(figures: Figures, waiting: u64) -> Status {
        let stream =
            StreamInfo { name: "logs".into(), first: RecordNumber(7), next: RecordNumber(7 + waiting), bytes: 9 };
        let notes = [(Figures::key("hub:4711"), figures.to_string()), (Figures::heard_key("logs"), "8".into())];
        Status::new(1_000, vec![stream], &notes.into())
    }

    #[test]
    fn a_silent_peer_is_named_with_what_to_check() {
        let figures = Figures { written: 999, last_heard: 987, packets: 9, rtt_us: 12_000, ..Figures::default() };
        let text = status(figures.clone(), 3).text(Paint::stdout());
        assert!(
            text.contains("no answer from hub:4711 for 12s; is it running, and is this node's key listed"),
            "{text}"
        );
        assert!(text.contains("link running, heard 13s ago, RTT 12.0ms"), "{text}");
        assert!(!status(figures, 0).text(Paint::stdout()).contains("no answer"), "nothing is waiting");
        let never = Figures { written: 900, packets: 9, ..Figures::default() };
        let text = status(never, 3).text(Paint::stdout());
        assert!(text.contains("no answer from hub:4711 yet") && text.contains("last note 1m40s ago, never"), "{text}");
    }

    #[test]
    fn it_says_whether_the_path_tells_of_congestion_by_marks() {
        let text = |ecn, marks| status(Figures { ecn, marks, ..Figures::default() }, 0).text(Paint::stdout());
        assert!(text(Ecn::Untested, 0).contains("; congestion marks (ECN) being tested"));
        assert!(text(Ecn::InUse, 1_234).contains("; congestion marks (ECN) in use, 1,234 seen"));
        assert!(text(Ecn::Unusable, 0).contains("; congestion marks (ECN) not usable on this path"));
        let json = status(Figures { ecn: Ecn::InUse, marks: 7, ..Figures::default() }, 0).json();
        assert_eq!((&json["links"][0]["ecn"], &json["links"][0]["ecn_marks"]), (&json!("in use"), &json!(7)));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_link_run() {
        let figures = Figures { written: 2_000, last_heard: 1_990, packets: 9, ..Figures::default() };
        let text = status(figures, 3).text(Paint::stdout());
        assert!(text.contains("link's last note at a time still to come by this clock"), "{text}");
        assert!(!text.contains("link running") && !text.contains(" ago"), "{text}");
    }

    #[test]
    fn hints_never_contradict_the_records() {
        let heard = |waiting| status(Figures::default(), waiting).json()["streams"][0]["heard"].clone();
        assert_eq!((heard(3), heard(0)), (json!(8), json!(7)));
    }

    #[test]
    fn an_outbox_without_a_link_says_so() {
        let status = Status::new(1_000, Vec::new(), &BTreeMap::new());
        assert!(status.text(Paint::stdout()).ends_with("no link has run on this outbox yet"));
    }
}
