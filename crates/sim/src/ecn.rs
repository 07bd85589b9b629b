/// The two ECN bits of the IP header (RFC 3168, 5).
///
/// ```
/// use stayfast_sim::Ecn;
///
/// assert_eq!(Ecn::default(), Ecn::NotEct);
/// assert_eq!(Ecn::from_bits(0b10), Ecn::Ect0);
/// assert_eq!(Ecn::Ce.bits(), 0b11);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not take part: a queue that has something to say must drop.
    #[default]
    NotEct = 0b00,
    /// ECT(1): takes part.
    Ect1 = 0b01,
    /// ECT(0): takes part.
    Ect0 = 0b10,
    /// A queue on the way was congested.
    Ce = 0b11,
}

impl Ecn {
    /// From the two low bits.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// As they stand in the header.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Can a queue mark it instead of dropping it? A mark may be marked again.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}
