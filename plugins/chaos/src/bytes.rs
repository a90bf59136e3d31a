//! Faults in the bytes of answers.

use ctx_engine_sdk::protocol::{Encoding, Head, Hello, decode, params, verb};
use serde_json::Value;

use crate::fault::{Fault, Mischief, Orders};

/// Reads calls, and corrupts answers.
#[derive(Debug, Default)]
pub(crate) struct Spoiler(Mischief);

impl Spoiler {
    /// Returns a corrupted answer, if the fault concerns bytes and is due at this call.
    pub(crate) fn spoil(&mut self, call: &[u8], answer: &[u8]) -> Option<Vec<u8>> {
        let Head { id, verb: Some(called), .. } = Head::read(call).ok()? else { return None };
        if called == verb::HELLO {
            let hello: Hello = params(call).ok()?;
            self.0 = Mischief::new(Orders::read(&hello.config).ok()?);
        }
        match self.0.strikes(&called)? {
            Fault::Garbage => Some(b"\xff\xfe{]: not what was agreed on".to_vec()),
            Fault::WrongId => {
                let mut wrong: Value = decode(answer).ok()?;
                *wrong.get_mut("id")? = Value::from(id.wrapping_add(1));
                Encoding::of(answer).encode(&wrong).ok()
            }
            _ => None,
        }
    }
}
