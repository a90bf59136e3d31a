//! Engines that are not built in: a call of one in a library or a process, beside the bare codec.
//!
//! The engines are those of `target/plugins`, which `cargo xtask plugins --release` builds.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ctx_config::Config;
use ctx_core::text::head_bytes;
use ctx_core::{
    AssembleRequest, Block, ContextEngine, ContextView, Counter, EngineState, Entry, Message,
    RawJson, Role, Services, Timestamp, TokenLedger, Tokens, ToolCall, TurnContext,
};
use ctx_engine_registry::find::Search;
use ctx_engine_registry::{BuildContext, Registry};
use ctx_engine_sdk::protocol::{Encoding, decode};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::figure::{Figure, Goal, Side, medians};
use crate::{Effort, process};

/// A window in which everything fits: only the call is measured.
const WINDOW: Tokens = Tokens(4_000_000);

const CARRIERS: [Carrier; 2] = [
    Carrier { name: "library", suffix: "", trust: "in-process" },
    Carrier { name: "process", suffix: "-process", trust: "process" },
];

/// How an engine is reached.
#[derive(Clone, Copy)]
struct Carrier {
    name: &'static str,
    /// The end of the engine's id.
    suffix: &'static str,
    trust: &'static str,
}

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let engines = Engines::find()?;
    whole(&engines, effort, print)?;
    first_plan(&engines, effort, print)?;
    for known in [500, 2_000] {
        next_turn(&engines, known, effort, print)?;
    }
    load(&engines, effort, print)
}

/// The engines in `target/plugins`.
struct Engines {
    folder: PathBuf,
    registry: Registry,
    runtime: Runtime,
}

impl Engines {
    fn find() -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target.unwrap_or_else(|| process::root().join("target"));
        let folder = std::path::absolute(target.join("plugins"))?;
        ensure!(
            folder.join("chaos/chaos.toml").is_file(),
            "no engines in {}: run `cargo xtask plugins --release`",
            folder.display(),
        );
        let search = Search::default().with_list(folder.as_os_str());
        let registry = Registry::collect()?.with_search(search);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { folder, registry, runtime })
    }

    /// Builds an engine with these settings, besides `trust`.
    fn engine(
        &self,
        carrier: Carrier,
        name: &str,
        settings: &str,
    ) -> Result<Arc<dyn ContextEngine>> {
        let Carrier { suffix, trust, .. } = carrier;
        let id = format!("{name}{suffix}");
        let config = Config::parse(&format!(
            "{{ plugins: {{ slots: {{ contextEngine: '{id}' }}, \
               engines: {{ '{id}': {{ trust: '{trust}', {settings} }} }} }} }}"
        ))?;
        let services = Services::default();
        let context = BuildContext {
            config: &config,
            services: &services,
            window: WINDOW.into(),
            registry: &self.registry,
        };
        let built = self.registry.build_engine(None, &context);
        built.with_context(|| format!("cannot build {id} of {}", self.folder.display()))
    }

    /// Assembles a request. A fallback must not have made it.
    fn assemble(
        &self,
        engine: &dyn ContextEngine,
        session: &str,
        view: ContextView,
    ) -> Result<ContextView> {
        let turn = TurnContext::at(Timestamp(0));
        let request = AssembleRequest { session_id: session.to_owned(), view, turn };
        let view = self.runtime.block_on(engine.assemble(request))?.into_view();
        let health = engine.health().context("the engine is built in")?;
        ensure!(health.state == EngineState::Ok, "the engine failed: {health:?}");
        Ok(view)
    }
}

/// Returns the milliseconds of a call. What it made is dropped later.
fn ms<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    let started = Instant::now();
    let made = work()?;
    let took = started.elapsed();
    drop(made);
    Ok(took.as_secs_f64() * 1e3)
}

fn message(number: usize, bytes: usize) -> Message {
    let text = format!("line {number} of \"a story\"\n\twith quotes, and 中文 too. ").repeat(64);
    let text = head_bytes(&text, bytes);
    match number % 4 {
        0 => Message::text(Role::User, text),
        1 => {
            let arguments = RawJson::from_text(r#"{"path":"src/lib.rs"}"#);
            let call = ToolCall::new(format!("call-{number}"), "read", arguments);
            Message::new(Role::Assistant, vec![Block::text(text), Block::ToolCall(call)])
        }
        2 => Message::tool_result(format!("call-{}", number - 1), text),
        _ => Message::text(Role::Assistant, text),
    }
}

fn entry(number: usize, bytes: usize) -> Arc<Entry> {
    Arc::new(Entry::in_memory(format!("{number:08x}"), message(number, bytes)))
}

fn entries(count: usize, bytes: usize) -> Vec<Arc<Entry>> {
    (0..count).map(|number| entry(number, bytes)).collect()
}

fn view(entries: &[Arc<Entry>]) -> Result<ContextView> {
    let ledger = TokenLedger::new(Counter::default(), WINDOW, Tokens(8_000));
    let mut view = ContextView::new(ledger);
    for entry in entries {
        view.append(entry.clone())?;
    }
    Ok(view)
}

/// An engine gets all messages, and answers with each of them in full, in both encodings; the answer is
/// checked and applied.
fn whole(engines: &Engines, effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let large = entries(400, 1_824);
    let messages: Vec<_> =
        large.iter().map(|entry| entry.message()).collect::<ctx_core::Result<_>>()?;
    let kib = serde_json::to_vec(&messages)?.len() / 1_024;
    let codec = |encoding: Encoding| -> Side<'_> {
        let messages = &messages;
        Box::new(move || {
            ms(|| {
                let there = encoding.encode(&Messages { messages: black_box(messages) })?;
                let read: Messages<Vec<Message>> = decode(&there)?;
                let back = encoding.encode(&read)?;
                Ok(decode::<Messages<Vec<Message>>>(&back)?)
            })
        })
    };
    // Each call has a new view, so that all rows are sent again.
    let call = |carrier: Carrier, encoding: Encoding| -> Result<Side<'_>> {
        let settings = format!("encoding: '{}', config: {{ whole: true }}", encoding.name());
        let engine = engines.engine(carrier, "chaos", &settings)?;
        let large = &large;
        Ok(Box::new(move || {
            let view = view(large)?;
            ms(|| engines.assemble(&*engine, "s", view))
        }))
    };
    let [library, process] = CARRIERS;
    let [json, packed] = [Encoding::Json, Encoding::MessagePack];
    let sides = [
        codec(json),
        codec(packed),
        call(library, json)?,
        call(library, packed)?,
        call(process, json)?,
        call(process, packed)?,
    ];
    let [json_codec, packed_codec, rest @ ..] = medians(effort.rounds(200), sides)?;
    for (Carrier { name, .. }, took) in CARRIERS.iter().zip(rest.chunks_exact(2)) {
        let what = format!("an engine in a {name} answers 400 messages ({kib} KiB) in full");
        let id = format!("engine-whole-{name}");
        let figure = Figure::new(&*id, &*what, "ms", took[0]);
        print(figure.beside_limit(codec_of(json), json_codec));
        let (id, what) = (format!("{id}-msgpack"), format!("{what}, in MessagePack"));
        let figure = Figure::new(id, what, "ms", took[1]).beside_peer("in JSON", took[0]);
        print(figure.beside_limit(codec_of(packed), packed_codec).goal(Goal::OfPeer(0.5)));
    }
    Ok(())
}

/// A list of messages, in an object as in the protocol.
#[derive(Serialize, Deserialize)]
struct Messages<M> {
    messages: M,
}

fn codec_of(encoding: Encoding) -> String {
    format!("two {encoding} encodes and two decodes of them")
}

/// An engine that answers with a plan gets a session that it does not know.
fn first_plan(engines: &Engines, effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let long = entries(2_000, 400);
    let sides = each(|carrier| {
        let engine = engines.engine(carrier, "sliding-window", "")?;
        let (long, mut session) = (&long, 0);
        Ok(Box::new(move || {
            session += 1;
            let view = view(long)?;
            ms(|| engines.assemble(&*engine, &session.to_string(), view))
        }))
    })?;
    let what = "the first plan for 2,000 messages, by an engine in a";
    show("engine-plan", what, medians(effort.rounds(40), sides)?, print);
    Ok(())
}

/// The same engine gets two more messages of a session that it knows.
fn next_turn(
    engines: &Engines,
    known: usize,
    effort: Effort,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    let all = entries(known, 400);
    let sides = each(|carrier| {
        let engine = engines.engine(carrier, "sliding-window", "")?;
        let mut first = engines.assemble(&*engine, "known", view(&all)?)?;
        first.finish()?;
        let (mut view, mut number) = (Some(first), known);
        Ok(Box::new(move || {
            let mut next = view.take().context("an earlier turn failed")?;
            number += 4;
            for number in [number, number + 3] {
                next.append(entry(number, 200))?;
            }
            let mut done = None;
            let took = ms(|| {
                let mut next = engines.assemble(&*engine, "known", next)?;
                next.finish()?;
                done = Some(next);
                Ok(())
            });
            view = done;
            took
        }))
    })?;
    let what = format!("one more turn after {known} messages, by an engine in a");
    show(&format!("engine-next-{known}"), &what, medians(effort.rounds(200), sides)?, print);
    Ok(())
}

/// Loads an engine, until its first answer.
fn load(engines: &Engines, effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let few = entries(10, 400);
    let sides = each(|carrier| {
        let few = &few;
        Ok(Box::new(move || {
            let view = view(few)?;
            ms(|| {
                let engine = engines.engine(carrier, "sliding-window", "")?;
                let view = engines.assemble(&*engine, "s", view)?;
                Ok((engine, view))
            })
        }))
    })?;
    let what = "loading an engine, until its first answer, in a";
    show("engine-load", what, medians(effort.rounds(20), sides)?, print);
    Ok(())
}

/// Makes a side for each carrier.
fn each<'a>(side: impl Fn(Carrier) -> Result<Side<'a>>) -> Result<[Side<'a>; 2]> {
    let [library, process] = CARRIERS.map(side);
    Ok([library?, process?])
}

fn show(id: &str, what: &str, took: [f64; 2], print: &mut dyn FnMut(Figure)) {
    for (Carrier { name, .. }, took) in CARRIERS.iter().zip(took) {
        print(Figure::new(format!("{id}-{name}"), format!("{what} {name}"), "ms", took));
    }
}
