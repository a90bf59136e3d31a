//! Faults of the engine itself.

use std::io::Write;
use std::time::{Duration, Instant};

use ctx_engine_sdk::protocol::{Encoding, RawMessage, verb};
use ctx_engine_sdk::{
    Assembled, Bootstrap, Bootstrapped, Compact, CompactResult, Compacted, Engine, Error,
    ErrorKind, Hello, Host, Info, Insertion, OutgoingMessage, Plan, Result, Row, Session,
    SubagentEnded, SubagentSpawn, TurnStatus,
};
use serde_json::json;

use crate::fault::{Fault, Mischief, Orders};
use crate::library::segfault;

const NO_SUCH_ROW: &str = "no-such-row";

/// The engine.
#[derive(Debug)]
pub struct Chaos(Mischief);

impl Chaos {
    /// Commits the fault if it is due at this call. A fault that belongs to one verb is not
    /// committed but returned.
    fn at(&mut self, verb: &str, host: &Host<'_>) -> Result<Option<Fault>> {
        match self.0.strikes(verb) {
            Some(fault) => commit(fault, &self.0.orders, host),
            None => Ok(None),
        }
    }
}

impl Engine for Chaos {
    fn hello(hello: &Hello, host: &mut Host<'_>) -> Result<(Self, Info)> {
        let mut chaos = Self(Mischief::new(Orders::read(&hello.config)?));
        chaos.at(verb::HELLO, host)?;
        let info = Info::new("chaos", env!("CARGO_PKG_VERSION")).verbs(&verb::ALL);
        Ok((chaos, info.owns_compaction()))
    }

    fn assemble(&mut self, session: &Session, host: &mut Host<'_>) -> Result<Assembled> {
        let fault = self.at(verb::ASSEMBLE, host)?;
        Ok(match fault {
            Some(fault) => wrong(fault, session, &self.0.orders),
            None if self.0.orders.whole => whole(session),
            None => Assembled::default(),
        })
    }

    fn compact(
        &mut self,
        session: &Session,
        _: &Compact,
        host: &mut Host<'_>,
    ) -> Result<CompactResult> {
        let first = session.rows().first().map(|row| row.id.clone()).unwrap_or_default();
        let kept = match self.at(verb::COMPACT, host)? {
            Some(Fault::CompactNothing) => first,
            Some(Fault::CompactUnknownEntry) => NO_SUCH_ROW.into(),
            _ => return Ok(CompactResult::declined("chaos leaves compaction to its host")),
        };
        Ok(Compacted {
            summary: "Much was said.".into(),
            first_kept_entry_id: kept,
            tokens_before: session.tokens(),
            tokens_after: Some(1),
            details: None,
        }
        .into())
    }

    fn ingest(&mut self, _: &Session, _: &Row, _: bool, host: &mut Host<'_>) -> Result<bool> {
        self.at(verb::INGEST, host).map(|_| true)
    }

    fn bootstrap(&mut self, _: &Bootstrap, host: &mut Host<'_>) -> Result<Bootstrapped> {
        self.at(verb::BOOTSTRAP, host).map(|_| Bootstrapped::default())
    }

    fn commit_turn(&mut self, _: &Session, _: &str, host: &mut Host<'_>) -> Result<TurnStatus> {
        self.at(verb::COMMIT_TURN, host).map(|_| TurnStatus::Committed)
    }

    fn after_turn(&mut self, _: &Session, host: &mut Host<'_>) -> Result<()> {
        self.at(verb::AFTER_TURN, host).map(|_| ())
    }

    fn maintain(&mut self, _: &Session, host: &mut Host<'_>) -> Result<()> {
        self.at(verb::MAINTAIN, host).map(|_| ())
    }

    fn prepare_subagent_spawn(&mut self, _: &SubagentSpawn, host: &mut Host<'_>) -> Result<()> {
        self.at(verb::PREPARE_SUBAGENT_SPAWN, host).map(|_| ())
    }

    fn rollback_subagent_spawn(&mut self, _: &SubagentSpawn, host: &mut Host<'_>) -> Result<()> {
        self.at(verb::ROLLBACK_SUBAGENT_SPAWN, host).map(|_| ())
    }

    fn on_subagent_ended(&mut self, _: &SubagentEnded, host: &mut Host<'_>) -> Result<()> {
        self.at(verb::ON_SUBAGENT_ENDED, host).map(|_| ())
    }

    fn dispose(&mut self, host: &mut Host<'_>) -> Result<()> {
        self.at(verb::DISPOSE, host).map(|_| ())
    }
}

/// Keeps all rows, with a full list of messages.
fn whole(session: &Session) -> Assembled {
    let unchanged =
        |row: &Row| OutgoingMessage { id: row.id.clone(), message: row.message.clone() };
    let messages = Some(session.rows().iter().map(unchanged).collect());
    Assembled { messages, ..Assembled::default() }
}

/// Commits a fault that is possible at any verb. Returns a fault that belongs to one verb.
#[allow(clippy::exit, clippy::panic)] // the configuration orders them
fn commit(fault: Fault, orders: &Orders, host: &Host<'_>) -> Result<Option<Fault>> {
    match fault {
        Fault::Panic => panic!("chaos: a panic was ordered"),
        Fault::Abort => std::process::abort(),
        Fault::Segfault => segfault(),
        Fault::Exit => std::process::exit(3),
        Fault::Hang | Fault::NeverHello => loop {
            std::thread::park();
        },
        Fault::Slow => {
            let end = Instant::now() + Duration::from_millis(orders.ms);
            while !host.is_cancelled() && Instant::now() < end {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            if host.is_cancelled() {
                return Err(Error::new(ErrorKind::Cancelled, "chaos: cancelled while being slow"));
            }
        }
        Fault::Leak => {
            // An unused allocation could be optimised away.
            std::hint::black_box(vec![1u8; orders.bytes].leak());
        }
        Fault::StdoutNoise => {
            let mut stdout = std::io::stdout();
            // The host may have closed the pipe.
            let _ = stdout.write_all(b"chaos: noise\n").and_then(|()| stdout.flush());
        }
        Fault::Forget => {
            return Err(Error::new(ErrorKind::OutOfStep, "chaos: unknown session"));
        }
        other => return Ok(Some(other)),
    }
    Ok(None)
}

/// Returns an answer to `assemble` that breaks a rule.
fn wrong(fault: Fault, session: &Session, orders: &Orders) -> Assembled {
    let rows = session.rows();
    let ids = |those: &dyn Fn(&Row) -> bool| -> Vec<String> {
        let ids: Vec<_> = rows.iter().filter(|row| those(row)).map(|row| row.id.clone()).collect();
        // Without a matching row, the answer must still be wrong.
        if ids.is_empty() { vec![NO_SUCH_ROW.into()] } else { ids }
    };
    let dropping = |drop: Vec<String>| Assembled::from(Plan { drop, ..Plan::default() });
    match fault {
        Fault::LieAboutTokens => Assembled { estimated_tokens: Some(1), ..Assembled::default() },
        Fault::DropSystemPrompt => dropping(ids(&|row| row.role == "system")),
        Fault::DropPinned => dropping(ids(&|row| row.keep)),
        Fault::SplitPair => {
            let groups = session.groups();
            let pair = groups.iter().find(|group| group.len() > 1 && group.iter().all(|r| !r.keep));
            let call = pair.and_then(|pair| pair.first()).map(|row| row.id.clone());
            dropping(vec![call.unwrap_or_else(|| NO_SUCH_ROW.into())])
        }
        Fault::UnknownRow => dropping(vec![NO_SUCH_ROW.into()]),
        Fault::HugeAnswer => Assembled {
            system_prompt_addition: Some("x".repeat(orders.bytes)),
            ..Assembled::default()
        },
        Fault::BadMessage => {
            let bad = json!({"role": 7, "blocks": "none"});
            let bad = RawMessage::new(Encoding::Json, &bad).ok();
            let messages = rows
                .iter()
                .map(|row| OutgoingMessage { id: row.id.clone(), message: bad.clone() })
                .collect();
            Assembled { messages: Some(messages), ..Assembled::default() }
        }
        Fault::TooBig => {
            let words = usize::try_from(session.budget().window.saturating_mul(2));
            let text = "word ".repeat(words.unwrap_or(usize::MAX).clamp(1_000, 20_000_000));
            let insert = vec![Insertion { id: "chaos:big".into(), text, ..Insertion::default() }];
            Plan { insert, ..Plan::default() }.into()
        }
        _ => Assembled::default(),
    }
}
