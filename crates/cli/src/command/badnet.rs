use crate::failure::{Failure, Outcome};
use crate::human;
use crate::interrupt::Interrupt;
use crate::output::{Format, Paint, remark, table};
use crate::proxy::{Habits, Proxy};
use crate::sockets;
use serde_json::{Value, json};
use stayfast_sim::{PathSpec, Stats};
use std::net::SocketAddr;
use std::time::Duration;

/// Put a bad network between two programs: a UDP proxy, no root needed
///
/// Everything sent to LISTEN goes on to TARGET and back, over the path that the options describe; it is the path of
/// the simulator, in real time. Any number of clients, each with a port of its own towards TARGET; they share the
/// bottleneck. Works for every protocol over UDP. Ends with Ctrl-C, and then says what became of the datagrams.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast badnet 127.0.0.1:9000 hub:4711 --rate 50M --rtt 40ms --jitter 3ms --loss 1%
  stayfast badnet [::]:9000 [::1]:4711 --rate 1M --queue 64kB --both
  stayfast badnet 127.0.0.1:9000 hub:4711 --rate 10M --queue 1000p --aqm fq_codel --rtt 40ms
  stayfast badnet 127.0.0.1:9000 hub:4711 --rtt 40ms --loss 1% --burst 4 --late 1%:2ms-10ms
  stayfast badnet 127.0.0.1:9000 hub:4711 --rebind 60s --mtu 1420 --seed 7")]
pub struct Arguments {
    /// Where clients send to, as ADDRESS:PORT
    listen: SocketAddr,
    /// Where it goes, as HOST:PORT
    target: String,
    #[command(flatten)]
    path: PathArguments,
    /// Give every client a new port towards TARGET every so often, as a forgetful NAT does
    #[arg(long, value_parser = human::parse_duration)]
    rebind: Option<Duration>,
    #[command(flatten)]
    format: Format,
}

/// A path, in options.
#[derive(Debug, clap::Args)]
pub struct PathArguments {
    /// Bottleneck on the way to TARGET, bit/s: 64k, 50M, 1.5G [default: none]
    #[arg(long)]
    rate: Option<String>,
    /// The bottleneck and the policer are on the way back, too
    #[arg(long)]
    both: bool,
    /// What may wait at the bottleneck: 64kB, 100p (packets), 0.5bdp (rate x RTT) [default: 1bdp]
    #[arg(long, requires = "rate")]
    queue: Option<String>,
    /// Queue discipline of the bottleneck: red, codel or fq_codel; each client is a flow [default: drop-tail]
    #[arg(long, requires = "rate")]
    aqm: Option<String>,
    /// Delay there and back together: 40ms [default: 0]
    #[arg(long)]
    rtt: Option<String>,
    /// Each datagram is up to this much earlier or later, so that they overtake: 3ms [default: 0]
    #[arg(long)]
    jitter: Option<String>,
    /// Jitter does not let datagrams overtake
    #[arg(long)]
    ordered: bool,
    /// Loss of each datagram, each way: 1% [default: 0]
    #[arg(long)]
    loss: Option<String>,
    /// Losses come in bursts of so many datagrams on average: 4 [default: each by itself]
    #[arg(long, requires = "loss")]
    burst: Option<String>,
    /// A second copy of each datagram, each way: 1% [default: 0]
    #[arg(long)]
    dup: Option<String>,
    /// A flipped bit, each way: 0.1% [default: 0]
    #[arg(long)]
    corrupt: Option<String>,
    /// This share comes later than the rest, by a time between two: 1%:2ms-10ms [default: none]
    #[arg(long)]
    late: Option<String>,
    /// This share comes earlier than the rest, as far as the delay allows: 1%:2ms-10ms [default: none]
    #[arg(long)]
    early: Option<String>,
    /// Packets larger than this vanish, in bytes with the IP header [default: none do]
    #[arg(long)]
    mtu: Option<String>,
    /// What exceeds this rate and burst on the way to TARGET is dropped, not queued: 10M:64kB [default: nothing]
    #[arg(long)]
    police: Option<String>,
    /// Where all chance comes from
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl PathArguments {
    /// The path.
    pub fn spec(&self) -> Outcome<PathSpec> {
        let values = [
            ("rate", &self.rate),
            ("queue", &self.queue),
            ("aqm", &self.aqm),
            ("rtt", &self.rtt),
            ("jitter", &self.jitter),
            ("loss", &self.loss),
            ("burst", &self.burst),
            ("dup", &self.dup),
            ("corrupt", &self.corrupt),
            ("late", &self.late),
            ("early", &self.early),
            ("mtu", &self.mtu),
            ("police", &self.police),
        ];
        let mut words: Vec<String> =
            values.iter().filter_map(|(key, value)| value.as_ref().map(|value| format!("{key}={value}"))).collect();
        words.extend(self.both.then(|| "both".to_string()));
        words.extend(self.ordered.then(|| "ordered".to_string()));
        words.push(format!("seed={}", self.seed));
        words.join(" ").parse().map_err(|e| Failure::environment(format!("--{e}").replacen("--`", "`--", 1)))
    }
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let interrupt = Interrupt::catch()?;
        let path = self.path.spec()?;
        let target = sockets::resolve(&self.target, self.listen)?;
        let mut proxy = Proxy::bind(self.listen, target, &path, Habits { rebind: self.rebind })?;
        let listen = proxy.local_addr()?;
        let json = json!({ "listen": listen, "target": target, "path": path.to_string() });
        self.format.print(&json, &format!("{listen} -> {target}  {path}"))?;
        remark("Ctrl-C ends it");
        proxy.run(|| interrupt.is_set())?;
        let (forward, back) = proxy.stats();
        let json = json!({ "forward": stats_json(&forward), "back": stats_json(&back) });
        self.format.print(&json, &stats_text(&forward, &back))
    }
}

fn stats_json(stats: &Stats) -> Value {
    json!({
        "entered": stats.entered, "duplicated": stats.duplicated, "lost": stats.lost, "policed": stats.policed,
        "overflowed": stats.overflowed, "managed": stats.managed, "too_large": stats.oversize, "corrupted": stats.corrupted, "left": stats.left,
    })
}

/// What never happened has no column.
fn stats_text(forward: &Stats, back: &Stats) -> String {
    type Column = (&'static str, fn(&Stats) -> u64, bool);
    let columns: [Column; 9] = [
        ("IN", |s| s.entered, true),
        ("LOST", |s| s.lost, true),
        ("COPIED", |s| s.duplicated, true),
        ("BIT FLIPPED", |s| s.corrupted, false),
        ("TOO LARGE", |s| s.oversize, false),
        ("POLICED", |s| s.policed, false),
        ("QUEUE FULL", |s| s.overflowed, true),
        ("BY AQM", |s| s.managed, false),
        ("OUT", |s| s.left, true),
    ];
    let shown = columns.iter().filter(|(_, number, always)| *always || number(forward) + number(back) > 0);
    let shown: Vec<&Column> = shown.collect();
    let header: Vec<&str> = [""].into_iter().chain(shown.iter().map(|(name, ..)| *name)).collect();
    let row = |name: &str, s: &Stats| {
        let numbers = shown.iter().map(|(_, number, _)| human::count(number(s)));
        [name.to_string()].into_iter().chain(numbers).collect()
    };
    table(&header, &[row("forward", forward), row("back", back)], Paint::stdout())
}
