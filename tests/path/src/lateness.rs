use std::time::Duration;

/// How late packets left: a histogram with steps of 10 us.
///
/// ```
/// use std::time::Duration;
/// use stayfast_path::Lateness;
///
/// let mut lateness = Lateness::default();
/// (0..1_000).for_each(|us| lateness.add(Duration::from_micros(us)));
/// assert_eq!(lateness.permille(500), Duration::from_micros(500));
/// assert_eq!(lateness.permille(999), Duration::from_micros(1_000));
/// assert_eq!((lateness.count(), lateness.most()), (1_000, Duration::from_micros(999)));
/// ```
#[derive(Clone, Debug)]
pub struct Lateness {
    steps: Vec<u64>,
    count: u64,
    most: Duration,
}

const STEP: Duration = Duration::from_micros(10);
/// Whatever is later than 100 ms is in the last step.
const STEPS: usize = 10_000;

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { steps: vec![0; STEPS], count: 0, most: Duration::ZERO }
    }
}

impl Lateness {
    /// Counts a packet.
    pub fn add(&mut self, late: Duration) {
        let step = (late.as_nanos() / STEP.as_nanos()).min(STEPS as u128 - 1);
        self.steps[step as usize] += 1;
        self.count += 1;
        self.most = self.most.max(late);
    }

    /// So many thousandths of the packets were less late than this; exact to a step, upwards.
    pub fn permille(&self, permille: u64) -> Duration {
        let (wanted, mut sum) = (self.count * permille, 0);
        for (step, count) in (1..).zip(&self.steps) {
            sum += count * 1_000;
            if sum >= wanted {
                return if sum == 0 { Duration::ZERO } else { STEP * step };
            }
        }
        self.most
    }

    /// Packets counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The latest of all.
    pub fn most(&self) -> Duration {
        self.most
    }
}
