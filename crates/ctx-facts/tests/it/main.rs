//! The ledger of facts on invented statements.

mod supersession;
