use crate::carried::AliasNumber;
use core::time::Duration;
use stayfast_store::Level;

/// What a machine may use and how it behaves. The defaults suit a gateway and a hub alike.
///
/// ```
/// let config = stayfast_link::Config { max_streams: 8, ..Default::default() };
/// assert_eq!(config.datagram, 1_200);
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// UDP payload that every path is taken to carry, bytes; at least 576 are used, for a stream's name must fit beside a
    /// record.
    pub datagram: u16,
    /// UDP payload that is looked for on a path, bytes over IPv4; 20 less over IPv6. Not above `datagram`: packets stay
    /// at that. More than 1,472 takes an interface with jumbo frames.
    pub max_datagram: u16,
    /// Sent packets a peer's ledger holds; at the bound sending waits.
    pub ledger: usize,
    /// Body bytes beyond STORED that one peer may have in our memory.
    pub pool: usize,
    /// Body bytes beyond STORED that all peers together may have in our memory.
    pub total_pool: usize,
    /// Streams one peer may have, in each direction.
    pub max_streams: usize,
    /// Longest record taken, bytes.
    pub max_record: usize,
    /// Unsent body bytes read ahead from the outbox, per stream.
    pub read_ahead: usize,
    /// Records in one delivery.
    pub batch_records: usize,
    /// Body bytes in one delivery, unless a single record is longer.
    pub batch_bytes: usize,
    /// Least durability a STORED must carry before the outbox lets the record go.
    pub required: Level,
    /// Longest wait of an acknowledgement for company.
    pub ack_delay: Duration,
    /// Longest time between two questions about records that are not STORED.
    pub ask_at_most: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            datagram: stayfast_pmtud::BASE,
            max_datagram: stayfast_pmtud::MAX_IPV4,
            ledger: 8_192,
            pool: 8 << 20,
            total_pool: 256 << 20,
            max_streams: 64,
            max_record: 1 << 20,
            read_ahead: 256 << 10,
            batch_records: 256,
            batch_bytes: 1 << 20,
            required: Level::Power,
            ack_delay: Duration::from_millis(5),
            ask_at_most: Duration::from_secs(25),
        }
    }
}

/// Least UDP payload of a full packet: what every INIT needs for OPEN, ORIGIN and 64 bytes of a record.
pub(crate) const MIN_DATAGRAM: u16 = 576;
/// Body bytes a sender may have beyond STORED before it has heard a CREDIT (or one record, if that is longer).
pub(crate) const FIRST_CREDIT: u64 = 64 << 10;
/// Runs of one peer whose packets are told apart at a time: one per session that can exist.
pub(crate) const MAX_RUNS: usize = 6;
/// Short numbers (aliases) of one run that a receiver remembers; the sender keeps to fewer.
pub(crate) const MAX_ALIASES: usize = 256;
/// How far back an alias may lie before the sender opens a new one for the same records.
pub(crate) const ALIAS_REACH: AliasNumber = 200;
/// Records a sender may have begun beyond STORED, so that records without a body have a bound too.
pub(crate) const MAX_AHEAD: u64 = 1 << 20;
