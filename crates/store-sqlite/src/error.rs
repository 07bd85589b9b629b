use rusqlite::ErrorCode;
use rusqlite::ffi;
use stayfast_store::{AppendError, StoreError};

/// What goes wrong inside a transaction, before it is told to the caller.
#[derive(Debug)]
pub(crate) enum Fail {
    Sql(rusqlite::Error),
    Append(AppendError),
}

impl From<rusqlite::Error> for Fail {
    fn from(e: rusqlite::Error) -> Fail {
        Fail::Sql(e)
    }
}

impl From<StoreError> for Fail {
    fn from(e: StoreError) -> Fail {
        Fail::Append(e.into())
    }
}

impl From<AppendError> for Fail {
    fn from(e: AppendError) -> Fail {
        Fail::Append(e)
    }
}

impl From<Fail> for AppendError {
    fn from(fail: Fail) -> AppendError {
        match fail {
            Fail::Sql(e) => AppendError::Store(translate(&e)),
            Fail::Append(e) => e,
        }
    }
}

impl From<Fail> for StoreError {
    fn from(fail: Fail) -> StoreError {
        match fail {
            Fail::Sql(e) => translate(&e),
            Fail::Append(AppendError::Store(e)) => e,
            // Only appends refuse a batch, and they report it as it is.
            Fail::Append(other) => StoreError::Io(other.to_string()),
        }
    }
}

/// SQLite's result codes in our words.
pub(crate) fn translate(e: &rusqlite::Error) -> StoreError {
    let rusqlite::Error::SqliteFailure(code, _) = e else {
        return match e {
            // A column holds another type than the schema says.
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) => {
                StoreError::Corrupt { what: e.to_string() }
            }
            _ => StoreError::Io(e.to_string()),
        };
    };
    if matches!(code.extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) {
        return StoreError::Poisoned;
    }
    match code.code {
        ErrorCode::DiskFull => StoreError::DiskFull,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt { what: e.to_string() },
        _ => StoreError::Io(e.to_string()),
    }
}
