use core::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The first number.
            pub const ZERO: $name = $name(0);

            /// The number `n` places after this one; saturates.
            #[must_use]
            pub const fn plus(self, n: $inner) -> $name {
                $name(self.0.saturating_add(n))
            }

            /// The number after this one; saturates.
            #[must_use]
            pub const fn next(self) -> $name {
                self.plus(1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The number of a packet: one counter per run and peer, never reset by a new key (RFC 9000, 12.3).
    ///
    /// ```
    /// use stayfast_units::PacketNumber;
    /// assert_eq!(PacketNumber(7).next(), PacketNumber(8));
    /// ```
    PacketNumber(u64)
}

number! {
    /// The number of a record in its stream: 0, 1, 2 and so on.
    ///
    /// ```
    /// use stayfast_units::RecordNumber;
    /// assert_eq!(RecordNumber::ZERO.plus(3).to_string(), "3");
    /// ```
    RecordNumber(u64)
}

number! {
    /// A machine's own short index of a stream. It has no meaning outside that machine.
    ///
    /// ```
    /// use stayfast_units::StreamId;
    /// assert!(StreamId(1) < StreamId(2));
    /// ```
    StreamId(u32)
}
