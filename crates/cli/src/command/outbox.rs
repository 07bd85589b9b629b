use crate::failure::{Failure, Outcome};
use crate::files;
use crate::human;
use crate::input::Framing;
use crate::output::{Format, Paint, remark, table};
use crate::text;
use clap::Subcommand;
use serde_json::{Value, json};
use stayfast::Gaps;
use stayfast_store::{Hole, Item, Origin, Outbox};
use stayfast_store_sqlite::{Damage, LinkLock, Quarantined, SqliteOutbox, Verdict};
use stayfast_units::RecordNumber;
use std::fs;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// Look into an outbox: list its streams, verify it, export records, give records up; salvage one that is damaged
///
/// Looking works while a link runs, on a copy, and where nothing can be written.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Ls(Ls),
    Verify(Verify),
    Export(Export),
    Drop(Drop),
    Salvage(Salvage),
}

impl Arguments {
    pub fn run(self) -> Outcome {
        match self.what {
            What::Ls(ls) => ls.run(),
            What::Verify(verify) => verify.run(),
            What::Export(export) => export.run(),
            What::Drop(drop) => drop.run(),
            What::Salvage(salvage) => salvage.run(),
        }
    }
}

/// List the streams: how many records were put, are stored at the receiver, and still wait
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast outbox ls edge.db
  stayfast outbox ls edge.db --json | jq -r 'select(.stream == \"logs\").put'")]
struct Ls {
    /// The outbox
    db: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Ls {
    fn run(self) -> Outcome {
        let mut outbox = files::outbox_to_read(&self.db)?;
        let streams = outbox.streams().map_err(|e| Failure::store(&self.db, &e))?;
        let quarantined = outbox.quarantined().map_err(|e| Failure::store(&self.db, &e))?;
        if self.format.json {
            for s in &streams {
                let line = json!({
                    "stream": s.name, "put": s.next.0, "stored": s.first.0, "waiting": s.records(), "bytes": s.bytes,
                });
                self.format.print(&line, "")?;
            }
            return quarantined.iter().try_for_each(|q| self.format.print(&quarantined_json(q), ""));
        }
        let row = |s: &stayfast_store_sqlite::StreamInfo| {
            let waiting = human::count(s.records());
            vec![s.name.clone(), human::count(s.next.0), human::count(s.first.0), waiting, human::bytes(s.bytes)]
        };
        let rows: Vec<_> = streams.iter().map(row).collect();
        let streams = table(&["STREAM", "PUT", "STORED", "WAITING", "SIZE"], &rows, Paint::stdout());
        self.format.print(&Value::Null, &[vec![streams], quarantined_text(&quarantined)].concat().join("\n"))
    }
}

/// What is in quarantine, for people: nothing if nothing is.
fn quarantined_text(all: &[Quarantined]) -> Vec<String> {
    if all.is_empty() {
        return Vec::new();
    }
    let row =
        |q: &Quarantined| vec![q.stream.clone(), human::count(q.first.0), human::count(q.count), human::bytes(q.bytes)];
    let rows: Vec<_> = all.iter().map(row).collect();
    let table = table(&["STREAM", "FROM", "RECORDS", "SIZE"], &rows, Paint::stdout());
    vec!["\nbatches with damage, copied to the table stayfast_quarantine:".to_string(), table]
}

fn quarantined_json(q: &Quarantined) -> Value {
    json!({ "quarantined": q.stream, "first": q.first.0, "count": q.count, "bytes": q.bytes })
}

/// Check every checksum and the structure of the file
///
/// A damaged record never stops a stream: the receiver is told that its number is a gap. Pages that cannot be read do
/// stop it; `stayfast outbox salvage` keeps the rest. Exit code 1 if anything is damaged.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast outbox verify edge.db
  stayfast outbox verify backup/edge.db || echo 'this copy is damaged'")]
struct Verify {
    /// The outbox
    db: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Verify {
    fn run(self) -> Outcome {
        let mut outbox = files::outbox_to_read(&self.db)?;
        let verdict = outbox.verify().map_err(|e| Failure::store(&self.db, &e))?;
        let quarantined = outbox.quarantined().map_err(|e| Failure::store(&self.db, &e))?;
        let mut json = verdict_json(&verdict);
        json["quarantine"] = quarantined.iter().map(quarantined_json).collect();
        let text = [vec![verdict_text(&verdict)], quarantined_text(&quarantined)].concat().join("\n");
        self.format.print(&json, &text)?;
        match verdict.is_sound() {
            true => Ok(()),
            false if verdict.unreadable.is_empty() => Err(Failure::failed(format!("{} is damaged", self.db.display()))),
            false => Err(Failure::failed(unreadable(&self.db))),
        }
    }
}

/// What to do about pages that cannot be read.
fn unreadable(db: &Path) -> String {
    let db = db.display();
    format!(
        "{db} has pages that cannot be read: restore them if you can; `stayfast outbox salvage {db}` gives up what is on \
         them and keeps the rest"
    )
}

fn verdict_json(verdict: &Verdict) -> Value {
    json!({
        "sound": verdict.is_sound(), "records": verdict.records, "bytes": verdict.bytes, "lost": verdict.lost,
        "damage": damage_json(&verdict.damage), "unreadable": damage_json(&verdict.unreadable),
        "structure": verdict.structure,
    })
}

fn damage_json(damage: &[Damage]) -> Vec<Value> {
    damage.iter().map(|d| json!({ "stream": d.stream, "first": d.first.0, "count": d.count })).collect()
}

fn damage_text(d: &Damage, what: &str) -> String {
    let (first, count) = (human::count(d.first.0), human::records(d.count));
    format!("{}: {count} {what} from number {first} on", text::printable(&d.stream))
}

fn verdict_text(verdict: &Verdict) -> String {
    let paint = Paint::stdout();
    let mut lines = vec![format!("{}, {}", human::records(verdict.records), human::bytes(verdict.bytes))];
    for (damage, what) in
        [(&verdict.damage, "damaged or missing"), (&verdict.unreadable, "on pages that cannot be read")]
    {
        lines.extend(damage.iter().map(|d| paint.red(&damage_text(d, what))));
    }
    lines.extend(verdict.structure.iter().map(|line| paint.red(line)));
    if verdict.is_sound() {
        lines.push(paint.green("sound"));
    }
    lines.join("\n")
}

/// Write the records of a stream that still wait to standard output
///
/// One line a record, which is exact as long as no record holds a line end; with --framed each record has its length
/// before it (4 B, big-endian), which is exact always and what `stayfast send --framed` reads. With --json each record
/// is an object with its number and its lineage; the body is `text` if it is UTF-8, else `base64`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast outbox export edge.db --stream logs | less
  stayfast outbox export edge.db --stream logs --from 1200 --framed > rest.bin
  stayfast outbox export edge.db --stream logs --json | jq .number")]
struct Export {
    /// The outbox
    db: PathBuf,
    /// The stream
    #[arg(long)]
    stream: String,
    /// Number of the first record to write
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Write each record's length (4 B, big-endian) before it, and no line ends
    #[arg(long, conflicts_with = "json")]
    framed: bool,
    #[command(flatten)]
    format: Format,
}

impl Export {
    fn run(self) -> Outcome {
        let mut outbox = files::outbox_to_read(&self.db)?;
        let streams = outbox.streams().map_err(|e| Failure::store(&self.db, &e))?;
        let Some(stream) = streams.iter().find(|s| s.name == self.stream) else {
            return Err(Failure::environment(no_such_stream(&self.db, &self.stream)));
        };
        if self.from < stream.first.0 {
            let first = human::count(stream.first.0);
            remark(format!("records below {first} are stored at the receiver and no longer here"));
        }
        let mut out = Writer { out: BufWriter::new(stdout().lock()), framing: Framing::new(self.framed), gaps: 0 };
        let mut outcome = Ok(());
        let show = |origin: &Origin, item: Item<'_>| {
            outcome = if self.format.json { out.json(origin, item) } else { out.plain(item) };
            outcome.is_ok()
        };
        let left_out = outbox.export(&self.stream, RecordNumber(self.from), show);
        let left_out = left_out.map_err(|e| Failure::store(&self.db, &e))?;
        outcome?;
        out.out.flush()?;
        left_out.iter().for_each(|d| remark(damage_text(d, "on pages that cannot be read")));
        match out.gaps + left_out.iter().map(|d| d.count).sum::<u64>() {
            0 => Ok(()),
            gaps => Err(Failure::failed(format!("{} could not be exported", human::records(gaps)))),
        }
    }
}

/// Give up records that still wait, or forget what is in quarantine
///
/// The records are gone then. Their numbers stay accounted for: the receiver is told that they are gaps, so the stream
/// goes on behind them. What was put together goes together: a batch that reaches to record N is kept whole. No link may
/// run meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast outbox drop edge.db --stream logs --before 1200          # says what would be lost
  stayfast outbox drop edge.db --stream logs --before 1200 --yes
  stayfast outbox drop edge.db --stream logs --quarantine --yes     # and `stayfast status` is content again")]
struct Drop {
    /// The outbox
    db: PathBuf,
    /// The stream
    #[arg(long)]
    stream: String,
    /// Give up the records below this number
    #[arg(long, value_name = "N", required_unless_present = "quarantine")]
    before: Option<u64>,
    /// Forget copies of damaged records, and that records were lost
    #[arg(long)]
    quarantine: bool,
    /// Do it
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl Drop {
    fn run(self) -> Outcome {
        let fail = |e| Failure::store(&self.db, &e);
        let mut outbox = files::outbox(&self.db)?;
        let _lock = outbox.lock_link().map_err(Failure::environment)?;
        let streams = outbox.streams().map_err(fail)?;
        let Some(stream) = streams.iter().find(|s| s.name == self.stream) else {
            return Err(Failure::environment(no_such_stream(&self.db, &self.stream)));
        };
        let before = self.before.unwrap_or(0).min(stream.next.0);
        let waiting = human::records(before.saturating_sub(stream.first.0));
        if !self.yes {
            let text = format!("{waiting} of '{}' would be lost, nothing is done yet: say --yes to do it", self.stream);
            return Err(Failure::failed(text));
        }
        let kept = outbox.give_up(&self.stream, RecordNumber(before)).map_err(fail)?.0;
        if kept < before {
            remark(format!("records {kept} to {} were put together with record {before}, and are kept", before - 1));
        }
        let mut forgotten = 0;
        if self.quarantine {
            forgotten = outbox.clear_quarantine(&self.stream).map_err(fail)?;
            outbox.note(&Gaps::key(&self.stream), "").map_err(fail)?;
        }
        let dropped = kept.saturating_sub(stream.first.0);
        let text = format!(
            "{} of '{}' dropped, {} in quarantine forgotten",
            human::records(dropped),
            self.stream,
            human::count(forgotten)
        );
        self.format.print(&json!({ "stream": self.stream, "dropped": dropped, "forgotten": forgotten }), &text)
    }
}

/// Put a new file of all that can be read in place of a damaged outbox
///
/// Needed when pages of the file cannot be read, so that a stream stands still before them; `stayfast outbox verify` says
/// which records are on them. They become gaps, and what is behind them goes on. That is final once the receiver was
/// told, so restore the pages from a copy if there is one. Stop what uses the outbox first. The damaged file is kept
/// beside it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast outbox salvage edge.db              # the damaged file is edge.db.damaged then
  stayfast outbox salvage edge.db --json | jq .lost")]
struct Salvage {
    /// The outbox
    db: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Salvage {
    fn run(self) -> Outcome {
        fs::metadata(&self.db).map_err(|e| Failure::file(&self.db, &e))?;
        let lock = LinkLock::take(&self.db).map_err(Failure::environment)?;
        let salvaged = SqliteOutbox::salvage(&self.db, &lock).map_err(|e| Failure::store(&self.db, &e))?;
        let json = json!({
            "appends": salvaged.rows, "lost": damage_json(&salvaged.lost), "damaged_file": salvaged.damaged,
        });
        let mut lines: Vec<_> = salvaged.lost.iter().map(|d| damage_text(d, "lost")).collect();
        let (rows, db, damaged) = (human::count(salvaged.rows), self.db.display(), salvaged.damaged.display());
        lines.push(format!("{rows} appends are in {db} as they were; the damaged file is {damaged}"));
        self.format.print(&json, &lines.join("\n"))
    }
}

fn no_such_stream(db: &Path, stream: &str) -> String {
    let db = db.display();
    format!("{db} has no stream '{stream}': `stayfast outbox ls {db}` lists them")
}

struct Writer<W> {
    out: W,
    framing: Framing,
    gaps: u64,
}

impl<W: Write> Writer<W> {
    fn plain(&mut self, item: Item<'_>) -> Outcome {
        match item {
            Item::Record(number, body) if self.framing == Framing::Lines && body.contains(&b'\n') => {
                self.out.flush()?;
                Err(Failure::failed(format!("record {number} holds a line end: use --framed or --json")))
            }
            Item::Record(_, body) => Ok(self.framing.write(&mut self.out, body)?),
            Item::Hole(number, hole) => {
                self.gaps += 1;
                remark(format!("record {number} is {}", name(hole)));
                Ok(())
            }
        }
    }

    fn json(&mut self, origin: &Origin, item: Item<'_>) -> Outcome {
        let mut line = match item {
            Item::Record(_, body) => text::json(body),
            Item::Hole(_, hole) => json!({ "hole": name(hole) }),
        };
        line["number"] = json!(item.number().0);
        line["lineage"] = json!(format!("{:016x}", origin.lineage.0));
        Ok(writeln!(self.out, "{line}")?)
    }
}

fn name(hole: Hole) -> &'static str {
    match hole {
        Hole::Gap => "damaged",
        Hole::Expired => "expired",
    }
}
