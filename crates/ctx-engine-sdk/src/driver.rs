//! Bytes in, bytes out: what stands between a carrier and an engine.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Engine;
use crate::host::{Carry, Host};
use crate::protocol::{
    Answer, Assemble, Assembled, Bootstrap, CommitTurn, Committed, Compact, Done, Error, ErrorKind,
    Head, Hello, Info, Ingest, Ingested, OfSession, PROTOCOL, Result, SubagentEnded, SubagentSpawn,
    verb,
};
use crate::sessions::Sessions;

/// Drives one engine: reads calls, keeps sessions, guards against panics, writes answers.
#[derive(Debug)]
pub struct Driver<E> {
    engine: Option<E>,
    info: Info,
    offered: Vec<String>,
    sessions: Sessions,
}

impl<E> Default for Driver<E> {
    fn default() -> Self {
        Self {
            engine: None,
            info: Info::default(),
            offered: Vec::new(),
            sessions: Sessions::default(),
        }
    }
}

impl<E: Engine> Driver<E> {
    /// Answers a call. Whatever the call or the engine does, there is an answer, but where the
    /// program ends. `cancelled` is set from another thread when the answer is not needed any more.
    pub fn answer(
        &mut self,
        call: &[u8],
        carry: &mut dyn Carry,
        cancelled: &AtomicBool,
    ) -> Vec<u8> {
        match Head::read(call) {
            Ok(head) => self.answer_to(head, call, carry, cancelled),
            Err(error) => encode(0, Err::<Done, _>(error)),
        }
    }

    /// As [`Driver::answer`], for a call whose head was read already.
    pub(crate) fn answer_to(
        &mut self,
        head: Head,
        call: &[u8],
        carry: &mut dyn Carry,
        cancelled: &AtomicBool,
    ) -> Vec<u8> {
        cancelled.store(false, Ordering::Relaxed);
        let id = head.id;
        let work = AssertUnwindSafe(|| self.work(head, call, carry, cancelled));
        catch_unwind(work).unwrap_or_else(|panic| {
            encode(id, Err::<Done, _>(Error::new(ErrorKind::Panic, panic_text(&*panic))))
        })
    }

    fn work(
        &mut self,
        head: Head,
        call: &[u8],
        carry: &mut dyn Carry,
        cancelled: &AtomicBool,
    ) -> Vec<u8> {
        let id = head.id;
        let Some(verb) = head.verb else {
            let error = Error::new(ErrorKind::BadRequest, "a call is a JSON object with a 'verb'");
            return encode(id, Err::<Done, _>(error));
        };
        if verb == verb::HELLO {
            return encode(id, self.hello(call, carry, cancelled));
        }
        let Some(engine) = &mut self.engine else {
            let error = Error::new(ErrorKind::BadRequest, format!("'{verb}' before 'hello'"));
            return encode(id, Err::<Done, _>(error));
        };
        let host = &mut Host::new(carry, cancelled, &self.offered);
        let sessions = &mut self.sessions;
        match &*verb {
            verb::BOOTSTRAP => encode(id, {
                read(call).and_then(|request: Bootstrap| engine.bootstrap(&request, host))
            }),
            verb::INGEST => encode(id, {
                read(call).and_then(|request: Ingest| {
                    let session = sessions.of(&request.session_id);
                    let is_new = session.ingest(&request.row);
                    let ingested = is_new
                        && engine.ingest(session, &request.row, request.is_heartbeat, host)?;
                    Ok(Ingested { ingested })
                })
            }),
            verb::ASSEMBLE => encode(id, {
                read(call).and_then(|request: Assemble| -> Result<Assembled> {
                    let session = sessions.of(&request.session_id);
                    session.set(request.budget, request.turn);
                    session.update(request.update)?;
                    engine.assemble(session, host)
                })
            }),
            verb::COMPACT => encode(id, {
                read(call).and_then(|mut request: Compact| {
                    let session = sessions.of(&request.session_id);
                    session.set(request.budget, request.turn);
                    session.update(std::mem::take(&mut request.update))?;
                    engine.compact(session, &request, host)
                })
            }),
            verb::COMMIT_TURN => encode(id, {
                read(call).and_then(|request: CommitTurn| {
                    let session = sessions.of(&request.session_id);
                    let status = engine.commit_turn(session, &request.advancement_key, host)?;
                    Ok(Committed { status })
                })
            }),
            verb::AFTER_TURN => encode(id, {
                read(call).and_then(|request: OfSession| {
                    let session = sessions.of(&request.session_id);
                    engine.after_turn(session, host).map(|()| Done {})
                })
            }),
            verb::MAINTAIN => encode(id, {
                read(call).and_then(|request: OfSession| {
                    let session = sessions.of(&request.session_id);
                    engine.maintain(session, host).map(|()| Done {})
                })
            }),
            verb::PREPARE_SUBAGENT_SPAWN => encode(id, {
                read(call).and_then(|spawn: SubagentSpawn| {
                    engine.prepare_subagent_spawn(&spawn, host).map(|()| Done {})
                })
            }),
            verb::ROLLBACK_SUBAGENT_SPAWN => encode(id, {
                read(call).and_then(|spawn: SubagentSpawn| {
                    engine.rollback_subagent_spawn(&spawn, host).map(|()| Done {})
                })
            }),
            verb::ON_SUBAGENT_ENDED => encode(id, {
                read(call).and_then(|ended: SubagentEnded| {
                    engine.on_subagent_ended(&ended, host).map(|()| Done {})
                })
            }),
            verb::DISPOSE => {
                let done = read(call).and_then(|_: Done| engine.dispose(host).map(|()| Done {}));
                self.engine = None;
                self.sessions.clear();
                encode(id, done)
            }
            _ => {
                let error = Error::new(ErrorKind::Unsupported, format!("no verb '{verb}'"));
                encode(id, Err::<Done, _>(error))
            }
        }
    }

    fn hello(
        &mut self,
        call: &[u8],
        carry: &mut dyn Carry,
        cancelled: &AtomicBool,
    ) -> Result<Info> {
        let hello: Hello = read(call)?;
        if major(&hello.protocol) != major(PROTOCOL) {
            let theirs = &hello.protocol;
            return Err(Error::new(
                ErrorKind::Protocol,
                format!("the host speaks protocol {theirs}, this engine {PROTOCOL}"),
            )
            .hint("use an engine and a host of one major version of the protocol"));
        }
        self.sessions.clear();
        self.offered.clone_from(&hello.features);
        let (engine, mut info) = E::hello(&hello, &mut Host::new(carry, cancelled, &self.offered))?;
        info.protocol = PROTOCOL.into();
        // The sessions are kept here.
        info.contract.remembers = true;
        self.engine = Some(engine);
        self.info = info.clone();
        Ok(info)
    }
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

/// The parameters of a call, in one pass over its bytes.
fn read<T: DeserializeOwned>(call: &[u8]) -> Result<T> {
    #[derive(Deserialize)]
    struct Call<T> {
        #[serde(default = "Option::default")]
        params: Option<T>,
    }
    match serde_json::from_slice(call)? {
        Call { params: Some(params) } => Ok(params),
        Call { params: None } => Ok(serde_json::from_str("{}")?),
    }
}

fn encode<T: Serialize>(id: u64, result: Result<T>) -> Vec<u8> {
    let answer = match result {
        Ok(ok) => Answer { id, ok: Some(ok), error: None },
        Err(error) => Answer { id, ok: None, error: Some(error) },
    };
    serde_json::to_vec(&answer).unwrap_or_else(|error| {
        let error = Error::failed(format!("the answer cannot be written as JSON: {error}"));
        let answer = Answer::<Done> { id, ok: None, error: Some(error) };
        serde_json::to_vec(&answer).unwrap_or_default()
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the engine panicked".to_owned())
}
