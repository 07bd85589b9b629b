use core::fmt;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// No name: what stands where nothing has been named yet.
            pub const NONE: $name = $name(0);
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }
    };
}

name! {
    /// One life of a process: drawn at random when it starts, never saved.
    ///
    /// ```
    /// use stayfast_units::RunId;
    /// assert_eq!(RunId(0xab).to_string(), "00000000000000ab");
    /// ```
    RunId
}

name! {
    /// A random number of a store session, stored with the first record that was numbered in it.
    /// It tells a restored or cloned store from the one whose records the receiver already has.
    ///
    /// ```
    /// use stayfast_units::Lineage;
    /// assert_ne!(Lineage(1), Lineage::NONE);
    /// ```
    Lineage
}

name! {
    /// A random number of a store, drawn when it is made. A store made anew is another store.
    ///
    /// ```
    /// use stayfast_units::StoreId;
    /// assert_eq!(StoreId::default(), StoreId::NONE);
    /// ```
    StoreId
}
