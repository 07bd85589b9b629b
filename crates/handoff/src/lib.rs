//! The queue between inserting threads and link threads.
