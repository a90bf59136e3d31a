//! Bytes in, bytes out: the layer between a transport and an engine.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Engine;
use crate::host::{Host, HostTransport};
use crate::protocol::{
    Answer, Assemble, Bootstrap, CommitTurn, Committed, Compact, Done, Encoding, Error, ErrorKind,
    Head, Hello, Info, Ingest, Ingested, PROTOCOL, Result, SessionParams, SubagentEnded,
    SubagentSpawn, params, verb,
};
use crate::sessions::SessionCache;

/// Drives one engine: reads calls, keeps sessions, catches panics, writes answers.
#[derive(Debug)]
pub struct Driver<E> {
    engine: Option<E>,
    info: Info,
    offered: Vec<String>,
    sessions: SessionCache,
}

impl<E> Default for Driver<E> {
    fn default() -> Self {
        Self {
            engine: None,
            info: Info::default(),
            offered: Vec::new(),
            sessions: SessionCache::default(),
        }
    }
}

impl<E: Engine> Driver<E> {
    /// Answers a call. Every call gets an answer, whatever the call contains or the engine does,
    /// unless the process ends. `cancelled` is set by another thread once the answer is not
    /// needed.
    pub fn answer(
        &mut self,
        call: &[u8],
        transport: &mut dyn HostTransport,
        cancelled: &AtomicBool,
    ) -> Vec<u8> {
        match Head::read(call) {
            Ok(head) => self.answer_to(head, call, transport, cancelled),
            Err(error) => encode((0, call), Err::<Done, _>(error)),
        }
    }

    /// Like [`Driver::answer`], for a call whose head is already parsed.
    pub(crate) fn answer_to(
        &mut self,
        head: Head,
        call: &[u8],
        transport: &mut dyn HostTransport,
        cancelled: &AtomicBool,
    ) -> Vec<u8> {
        cancelled.store(false, Ordering::Relaxed);
        let id = head.id;
        let work = AssertUnwindSafe(|| self.work(head, call, transport, cancelled));
        catch_unwind(work).unwrap_or_else(|panic| {
            encode((id, call), Err::<Done, _>(Error::new(ErrorKind::Panic, panic_text(&*panic))))
        })
    }

    fn work(
        &mut self,
        head: Head,
        call: &[u8],
        transport: &mut dyn HostTransport,
        cancelled: &AtomicBool,
    ) -> Vec<u8> {
        let id = head.id;
        let Some(verb) = head.verb else {
            let error = Error::new(ErrorKind::BadRequest, "a call is an object with a 'verb'");
            return encode((id, call), Err::<Done, _>(error));
        };
        if verb == verb::HELLO {
            return encode((id, call), self.hello(call, transport, cancelled));
        }
        let Some(engine) = &mut self.engine else {
            let error = Error::new(ErrorKind::BadRequest, format!("'{verb}' before 'hello'"));
            return encode((id, call), Err::<Done, _>(error));
        };
        let host = &mut Host::new(transport, cancelled, &self.offered);
        let answer = dispatch(engine, &mut self.sessions, &verb, (id, call), host);
        if verb == verb::DISPOSE {
            self.engine = None;
            self.sessions.clear();
        }
        answer
    }

    fn hello(
        &mut self,
        call: &[u8],
        transport: &mut dyn HostTransport,
        cancelled: &AtomicBool,
    ) -> Result<Info> {
        let hello: Hello = params(call)?;
        if major(&hello.protocol) != major(PROTOCOL) {
            let theirs = &hello.protocol;
            return Err(Error::new(
                ErrorKind::Protocol,
                format!("the host uses protocol {theirs}, the engine uses {PROTOCOL}"),
            )
            .hint("use an engine and a host with the same major version of the protocol"));
        }
        self.sessions.clear();
        self.offered.clone_from(&hello.features);
        let host = &mut Host::new(transport, cancelled, &self.offered);
        let (engine, mut info) = E::hello(&hello, host)?;
        info.protocol = PROTOCOL.into();
        // The driver keeps the sessions.
        info.contract.remembers = true;
        let encoding = Encoding::choose(&hello.encodings);
        info.contract.encoding = (encoding != Encoding::Json).then(|| encoding.name().to_owned());
        self.engine = Some(engine);
        self.info = info.clone();
        Ok(info)
    }
}

/// Answers a call of any verb except `hello`.
fn dispatch<E: Engine>(
    engine: &mut E,
    sessions: &mut SessionCache,
    verb: &str,
    call: (u64, &[u8]),
    host: &mut Host<'_>,
) -> Vec<u8> {
    match verb {
        verb::BOOTSTRAP => respond(call, |request: Bootstrap| engine.bootstrap(&request, host)),
        verb::INGEST => respond(call, |request: Ingest| {
            let session = sessions.of(&request.session_id);
            let is_new = session.ingest(&request.row);
            let ingested =
                is_new && engine.ingest(session, &request.row, request.is_heartbeat, host)?;
            Ok(Ingested { ingested })
        }),
        verb::ASSEMBLE => respond(call, |request: Assemble| {
            let session = sessions.of(&request.session_id);
            session.set(request.budget, request.turn);
            session.update(request.update)?;
            engine.assemble(session, host)
        }),
        verb::COMPACT => respond(call, |mut request: Compact| {
            let session = sessions.of(&request.session_id);
            session.set(request.budget, request.turn);
            session.update(std::mem::take(&mut request.update))?;
            engine.compact(session, &request, host)
        }),
        verb::COMMIT_TURN => respond(call, |request: CommitTurn| {
            let session = sessions.of(&request.session_id);
            let status = engine.commit_turn(session, &request.advancement_key, host)?;
            Ok(Committed { status })
        }),
        verb::AFTER_TURN => respond(call, |request: SessionParams| {
            engine.after_turn(sessions.of(&request.session_id), host).map(|()| Done {})
        }),
        verb::MAINTAIN => respond(call, |request: SessionParams| {
            engine.maintain(sessions.of(&request.session_id), host).map(|()| Done {})
        }),
        verb::PREPARE_SUBAGENT_SPAWN => respond(call, |spawn: SubagentSpawn| {
            engine.prepare_subagent_spawn(&spawn, host).map(|()| Done {})
        }),
        verb::ROLLBACK_SUBAGENT_SPAWN => respond(call, |spawn: SubagentSpawn| {
            engine.rollback_subagent_spawn(&spawn, host).map(|()| Done {})
        }),
        verb::ON_SUBAGENT_ENDED => respond(call, |ended: SubagentEnded| {
            engine.on_subagent_ended(&ended, host).map(|()| Done {})
        }),
        verb::DISPOSE => respond(call, |_: Done| engine.dispose(host).map(|()| Done {})),
        _ => {
            let error = Error::new(ErrorKind::Unsupported, format!("unknown verb '{verb}'"));
            encode(call, Err::<Done, _>(error))
        }
    }
}

/// Answers the call with this id: parses its parameters and passes them to `work`.
fn respond<P: DeserializeOwned, T: Serialize>(
    call: (u64, &[u8]),
    work: impl FnOnce(P) -> Result<T>,
) -> Vec<u8> {
    encode(call, params(call.1).and_then(work))
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

/// Encodes the answer to a call as the call is encoded.
fn encode<T: Serialize>((id, call): (u64, &[u8]), result: Result<T>) -> Vec<u8> {
    let encoding = Encoding::of(call);
    let answer = match result {
        Ok(ok) => Answer { id, ok: Some(ok), error: None },
        Err(error) => Answer { id, ok: None, error: Some(error) },
    };
    encoding.encode(&answer).unwrap_or_else(|error| {
        let error = Error::failed(format!("the answer cannot be written as {encoding}: {error}"));
        let answer = Answer::<Done> { id, ok: None, error: Some(error) };
        encoding.encode(&answer).unwrap_or_default()
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the engine panicked".to_owned())
}
