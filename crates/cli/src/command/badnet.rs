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
  stayfast badnet 127.0.0.1:9000 hub:4711 --rebind 60s --mtu 1420 --seed 7")]
pub struct Arguments {
    /// Where clients send to, as ADDRESS:PORT
    listen: SocketAddr,
    /// Where it goes, as HOST:PORT
    target: String,
    #[command(flatten)]
    path: PathArguments,
    /// Packets larger than this vanish, in bytes with the IP header
    #[arg(long)]
    mtu: Option<usize>,
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
    /// The bottleneck is on the way back, too
    #[arg(long, requires = "rate")]
    both: bool,
    /// What may wait at the bottleneck: 64kB, 100p (packets), 0.5bdp (rate x RTT) [default: 1bdp]
    #[arg(long, requires = "rate")]
    queue: Option<String>,
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
    /// A second copy of each datagram, each way: 1% [default: 0]
    #[arg(long)]
    dup: Option<String>,
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
            ("rtt", &self.rtt),
            ("jitter", &self.jitter),
            ("loss", &self.loss),
            ("dup", &self.dup),
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
        let mut proxy = Proxy::bind(self.listen, target, &path, Habits { mtu: self.mtu, rebind: self.rebind })?;
        let listen = proxy.local_addr()?;
        let json = json!({ "listen": listen, "target": target, "path": path.to_string() });
        self.format.print(&json, &format!("{listen} -> {target}  {path}"))?;
        remark("Ctrl-C ends it");
        proxy.run(|| interrupt.is_set())?;
        let (forward, back, too_large) = proxy.stats();
        let json = json!({ "forward": stats_json(&forward), "back": stats_json(&back), "too_large": too_large });
        self.format.print(&json, &stats_text(&forward, &back, too_large))
    }
}

fn stats_json(stats: &Stats) -> Value {
    json!({
        "entered": stats.entered, "duplicated": stats.duplicated, "lost": stats.lost,
        "overflowed": stats.overflowed, "left": stats.left,
    })
}

fn stats_text(forward: &Stats, back: &Stats, too_large: u64) -> String {
    let row = |name: &str, s: &Stats| {
        let numbers = [s.entered, s.lost, s.duplicated, s.overflowed, s.left];
        [name.to_string()].into_iter().chain(numbers.map(human::count)).collect()
    };
    let header = ["", "IN", "LOST", "COPIED", "QUEUE FULL", "OUT"];
    let mut text = table(&header, &[row("forward", forward), row("back", back)], Paint::stdout());
    if too_large > 0 {
        text.push_str(&format!("\n{} larger than the MTU", human::count(too_large)));
    }
    text
}
