//! A bottleneck that TCP flows share, each behind an access line of its own.
#![allow(dead_code, reason = "each test uses a part of it")]

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use stayfast_sim::{Limit, Path, PathId, Probability, TCP_PAYLOAD, TcpConfig, TcpControl, TcpFlow, World};
use stayfast_units::{Rate, Time};

/// Bytes on the wire of a full segment.
pub const WIRE: u64 = 1_514;

pub fn seconds(s: u64) -> Time {
    Time::from_millis(s * 1_000)
}

pub fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The addresses of a flow's two ends.
fn address(flow: usize, end: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, flow as u8, end), 1))
}

pub fn config(flow: usize, control: TcpControl) -> TcpConfig {
    TcpConfig { control, ..TcpConfig::to(address(flow, 2)) }
}

pub struct Lab {
    pub world: World,
    pub bottleneck: PathId,
    pub flows: Vec<TcpFlow>,
}

impl Lab {
    /// A bottleneck with a drop-tail queue.
    pub fn new(seed: u64, mbits: u64, queue: Limit) -> Lab {
        let mut world = World::new(seed);
        let rate = Rate::from_bits_per_sec(mbits * 1_000_000);
        let bottleneck = world.add_path("bottleneck", Path::new().outage().rate(rate, queue));
        Lab { world, bottleneck, flows: Vec::new() }
    }

    /// A bottleneck whose queue holds what it sends in one round trip.
    pub fn with_bdp(seed: u64, mbits: u64, rtt: u64) -> Lab {
        Lab::new(seed, mbits, Limit::Bytes(mbits * 1_000_000 / 8 * rtt / 1_000))
    }

    /// A flow with a round trip in milliseconds, jitter up to `jitter` each way and loss on the way there.
    pub fn flow(&mut self, rtt: u64, jitter: u64, loss: Probability, config: TcpConfig) -> TcpFlow {
        let n = self.flows.len();
        let line = |loss| {
            let path = Path::new().loss(loss).delay(millis(rtt) / 2);
            if jitter > 0 { path.jitter(millis(jitter)) } else { path }
        };
        let there = self.world.add_path(&format!("there {n}"), line(loss));
        let back = self.world.add_path(&format!("back {n}"), line(Probability::ZERO));
        let flow = TcpFlow::add(&mut self.world, address(n, 1), config, &[there, self.bottleneck], &[back]);
        self.flows.push(flow);
        flow
    }

    /// Such a flow without loss that always sends.
    pub fn plain(&mut self, rtt: u64, jitter: u64, control: TcpControl) -> TcpFlow {
        self.flow(rtt, jitter, Probability::ZERO, config(self.flows.len(), control))
    }

    /// What each flow got between two times, in Mbit/s.
    pub fn mbits(&self, from: Time, to: Time) -> Vec<f64> {
        self.flows.iter().map(|flow| flow.goodput(&self.world, from, to).bits_per_sec() as f64 / 1e6).collect()
    }
}

/// What TCP can carry of a rate.
pub fn ceiling(mbits: f64) -> f64 {
    mbits * TCP_PAYLOAD as f64 / WIRE as f64
}
