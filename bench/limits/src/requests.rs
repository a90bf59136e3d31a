//! Requests: assembling a session, one more turn of it, replaying all its requests, compacting it.

use std::fmt::Write;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use ctx_config::Config;
use ctx_core::{
    AssembleRequest, Block, ContextEngine, ContextView, Counter, Entry, Message, RawJson, Role,
    Services, Timestamp, TokenLedger, Tokens, ToolCall, TurnContext,
};
use ctx_engine_registry::{BuildContext, Registry};
use ctx_eval::{ReplaySetup, SessionReport, replay};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::{CitedMessage, FactLedger};
use ctx_layers::compaction::{
    self, CompactionPlan, History, PlanLimits, PlanOutcome, RepairOptions, SourceIndex, Ungrounded,
    plan, repair,
};
use ctx_session::{BranchMessage, ReplayMessage};
use ctx_testkit::{Sample, entries};
use futures_executor::block_on;

use crate::Effort;
use crate::figure::{Figure, Goal, Side, cpu_s, medians};
use crate::process;

const WINDOW: Tokens = Tokens(128_000);

/// The time of all requests.
const NOW: Timestamp = Timestamp(1_767_700_000_000);

const PARSE: &str = "`serde_json`: each message parsed once";

const LANGCHAIN: &str = "LangChain's `SummarizationMiddleware`, whose model answers at once: it counts four \
     characters as a token, and shows the model the last 4,000; it has no facts and no audit";

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    one_request(effort, print)?;
    replays(effort, print)?;
    compactions(effort, print)
}

/// Messages as JSON.
fn texts(messages: &[Message]) -> Result<Vec<String>> {
    Ok(messages.iter().map(serde_json::to_string).collect::<Result<_, _>>()?)
}

/// Returns the CPU seconds of parsing each message once: less is not enough to see a session.
fn parse_s(texts: &[String]) -> Result<f64> {
    let parse = |text: &String| serde_json::from_str::<Message>(text);
    let (seconds, _) = cpu_s(|| Ok(texts.iter().map(parse).collect::<Result<Vec<_>, _>>()?))?;
    Ok(seconds)
}

fn engine(config: &Config) -> Result<Arc<dyn ContextEngine>> {
    let registry = Registry::collect()?;
    let services = Services::default();
    let context =
        BuildContext { config, services: &services, window: WINDOW.into(), registry: &registry };
    Ok(registry.build_engine(None, &context)?)
}

fn ledger() -> TokenLedger {
    TokenLedger::new(Counter::default(), WINDOW, Tokens(20_000))
}

/// Appends messages to a view, and assembles the next request of the session `now` at a time.
pub(crate) fn assemble(
    engine: &dyn ContextEngine,
    mut view: ContextView,
    new: &[Arc<Entry>],
    at: Timestamp,
) -> Result<ContextView> {
    for entry in new {
        view.append(entry.clone())?;
    }
    let request = AssembleRequest { session_id: "now".into(), view, turn: TurnContext::at(at) };
    let mut view = block_on(engine.assemble(request))?.into_view();
    view.finish()?;
    Ok(view)
}

fn one_request(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    /// The messages of one more turn.
    const NEW: usize = 4;
    /// One turn is too short to be measured alone.
    const TURNS: usize = 32;
    // All layers are on, also pruning by age.
    let config = "{ agents: { defaults: { contextPruning: { mode: 'turn-age' } } } }";
    let engine = engine(&Config::parse(config)?)?;
    let messages = Sample::default().messages();
    let texts = texts(&messages)?;
    let cold = || {
        let entries = entries(messages.clone());
        let (seconds, _view) =
            cpu_s(|| assemble(&*engine, ContextView::new(ledger()), &entries, NOW))?;
        Ok(seconds * 1e3)
    };
    let parse = || Ok(parse_s(&texts)? * 1e3);
    let sides: [Side<'_>; 2] = [Box::new(cold), Box::new(parse)];
    let [ours, limit] = medians(effort.rounds(51), sides)?;
    let what = "assemble 1,000 messages of 200k tokens by all layers, nothing counted before: CPU";
    print(Figure::new("assemble", what, "ms", ours).beside_limit(PARSE, limit));

    let old = messages.len() - NEW;
    let turn = || {
        let mut open = Vec::with_capacity(TURNS);
        for _ in 0..TURNS {
            let mut all = entries(messages.clone());
            let new = all.split_off(old);
            open.push((assemble(&*engine, ContextView::new(ledger()), &all, NOW)?, new));
        }
        let assembled =
            || open.into_iter().map(|(view, new)| assemble(&*engine, view, &new, NOW)).collect();
        let (seconds, _views) = cpu_s::<Vec<ContextView>>(assembled)?;
        Ok(seconds * 1e6 / TURNS as f64)
    };
    let parse = || Ok(parse_s(&texts[old..])? * 1e6);
    let sides: [Side<'_>; 2] = [Box::new(turn), Box::new(parse)];
    let [ours, limit] = medians(effort.rounds(15), sides)?;
    let what = "one more turn of the same session, 4 messages: CPU";
    print(Figure::new("one-more-turn", what, "µs", ours).beside_limit(PARSE, limit));
    Ok(())
}

/// The messages of a session as a replay reads them; nothing is counted yet.
fn main_line(messages: &[Message]) -> Vec<ReplayMessage> {
    let line = entries(messages.to_vec()).into_iter().zip(messages).map(|(entry, message)| {
        let request = message.role == Role::Assistant;
        ReplayMessage { item: BranchMessage { entry, request }, compactions: Vec::new() }
    });
    line.collect()
}

fn replays(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let sizes = if effort.is_quick { [500, 1_000, 2_000] } else { [25_000, 50_000, 100_000] };
    for size in sizes {
        let messages = Sample { messages: size, tokens: size * 50, ..Sample::default() }.messages();
        let texts = texts(&messages)?;
        let setup = ReplaySetup {
            baseline: Default::default(),
            ledger: ledger(),
            engine: engine(&Config::default())?,
            profile: Default::default(),
            model: None,
            prices: None,
            details: false,
        };
        let ours = || {
            let line = main_line(&messages);
            let replayed = || block_on(replay(&line, SessionReport::default(), &setup, |_| {}));
            let (seconds, report) = cpu_s(|| Ok(replayed()?))?;
            ensure!(report.totals.overflows_with == 0, "a request did not fit");
            Ok(seconds)
        };
        let sides: [Side<'_>; 2] = [Box::new(ours), Box::new(|| parse_s(&texts))];
        let [ours, limit] = medians(effort.rounds(7), sides)?;
        let what = format!("replay {size} messages of 50 tokens, a request for each answer: CPU");
        let figure = Figure::new(format!("replay-{size}"), what, "s", ours);
        let figure = figure.beside_limit(PARSE, limit);
        print(if size == 100_000 { figure.goal(Goal::AtMost(0.35)) } else { figure });
    }
    Ok(())
}

/// One turn of a coding agent: it gets a request, reads, edits, tests and reports.
fn turn(n: usize) -> Vec<Message> {
    let mut out = vec![Message::text(
        Role::User,
        format!(
            "Please fix `part_{n}` in src/part_{n}.rs. Never touch lib/api_{n}.rs, it took 1{n} ms and \
             fails with HTTP 50{}; see https://bugs.example.org/{n} and #{n}. 不要改接口。",
            n % 5
        ),
    )];
    let arguments = [
        ("edit", format!(r#"{{"path":"src/part_{n}.rs"}}"#)),
        ("edit", format!(r#"{{"path":"src/part_{n}.rs","newText":"let x = {n};\nlet y = x;"}}"#)),
        ("bash", format!(r#"{{"command":"cd /srv/app && cargo test part_{n} 2>&1 | tail -5"}}"#)),
        ("bash", format!(r#"{{"command":"git commit -am 'part {n}'"}}"#)),
    ];
    for (step, (name, arguments)) in arguments.into_iter().enumerate() {
        let id = format!("call_{n}_{step}");
        let call = ToolCall::new(id.as_str(), name, RawJson::from_text(arguments));
        out.push(Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
        let mut result = String::new();
        for line in 0..60 {
            let _ = writeln!(
                result,
                "{line:>4}  let value_{line} = compute({n}, {line}); // a_b/{n}.rs"
            );
        }
        let _ = writeln!(result, "error[E0{n:03}]: mismatched types\n  --> src/part_{n}.rs:{n}:5");
        out.push(Message::tool_result(id, result));
    }
    out.push(Message::text(
        Role::Assistant,
        format!(
            "Fixed `part_{n}` in src/part_{n}.rs:{n}. We chose a map instead of a list because it is \
             faster: 2{n} ms. The loader reads `config_{n}.toml` now.\n\n- [ ] docs/part_{n}.md\n"
        ),
    ));
    out
}

/// Returns the messages of a session of this size.
fn agent_session(most: u64) -> Vec<Message> {
    let (mut out, mut tokens) = (Vec::new(), 0);
    for n in 0.. {
        if tokens >= most {
            break;
        }
        let messages = turn(n);
        tokens += messages.iter().map(|m| Counter::default().message(m).get()).sum::<u64>();
        out.extend(messages);
    }
    out
}

/// Plans a compaction of these messages.
fn planned(view: &ContextView) -> Result<(History, CompactionPlan)> {
    let history = History::of(view)?;
    match plan(&history, &compaction::Config::default(), PlanLimits::default())? {
        PlanOutcome::Compact(plan) => Ok((history, plan)),
        PlanOutcome::Nothing(reason) => bail!("nothing to compact: {reason}"),
    }
}

/// Returns the CPU milliseconds of LangChain's compaction of these messages, if it is installed.
fn langchain_ms(messages: &[String], rounds: usize) -> Result<Option<f64>> {
    let Some(mut python) = process::pip("python") else { return Ok(None) };
    let file = tempfile::NamedTempFile::new_in(process::root().join("target"))?;
    std::fs::write(&file, messages.join("\n"))?;
    python.arg(process::root().join("bench/peers/summarize.py")).arg(file.path());
    let (theirs, left) = process::repeated(&mut python, rounds)?;
    ensure!(left < messages.len() as u64, "LangChain compacted nothing");
    Ok(Some(theirs))
}

/// The last 200,000 tokens of a session are compacted; the facts of all its messages count.
fn compactions(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let counter = Counter::default();
    let all = agent_session(if effort.is_quick { 400_000 } else { 2_000_000 });
    let mut last = all.len();
    let mut tokens = 0;
    while tokens < 200_000 {
        last -= 1;
        tokens += counter.message(&all[last]).get();
    }
    let texts = texts(&all[last..])?;
    let parse = || Ok(parse_s(&texts)? * 1e3);
    let all = entries(all);
    let ledger = TokenLedger::new(counter, Tokens(200_000), Tokens(20_000));
    let mut view = ContextView::new(ledger);
    all[last..].iter().try_for_each(|entry| view.append(entry.clone()))?;
    let (history, plan) = planned(&view)?;
    let removed = history.read(0..plan.cut);
    let facts = || {
        let mut ledger = FactLedger::default();
        let read = || {
            removed.iter().for_each(|one| ledger.read(one));
            Ok(())
        };
        Ok(cpu_s(read)?.0 * 1e3)
    };
    let sides: [Side<'_>; 2] = [Box::new(facts), Box::new(parse)];
    let [ours, limit] = medians(effort.rounds(15), sides)?;
    let what = "read 200k tokens of messages for their facts: CPU";
    print(Figure::new("facts", what, "ms", ours).beside_limit(PARSE, limit));

    for (name, from) in [("200k", last), ("2M", 0)] {
        let mut ledger = FactLedger::default();
        all[from..last]
            .iter()
            .filter_map(|one| CitedMessage::of(one))
            .for_each(|one| ledger.read(&one));
        removed.iter().for_each(|one| ledger.read(one));
        let found = ledger.facts();
        let job = ExtractInput {
            state: None,
            messages: &removed,
            facts: &found,
            previous: None,
            turn_start: None,
            focus: None,
            budget: plan.summary_budget,
            counter: &counter,
        };
        if from == last {
            let ours = || Ok(cpu_s(|| Ok(extract(&job)))?.0 * 1e3);
            let sides: [Side<'_>; 2] = [Box::new(ours), Box::new(parse)];
            let [ours, limit] = medians(effort.rounds(15), sides)?;
            let what = "write the extractive summary of 200k tokens: CPU";
            print(Figure::new("extract", what, "ms", ours).beside_limit(PARSE, limit));
        }
        // A good draft with unsupported claims.
        let mut draft = extract(&job);
        draft.push_str(
            "\n- It also changed src/invented.rs in 987 ms.\n- See https://nowhere.example/x\n",
        );
        let ours = || {
            let work = || {
                let (history, plan) = planned(&view)?;
                let removed = history.read(0..plan.cut);
                let found = ledger.facts();
                let sources = SourceIndex::of(&removed, None, &[]);
                let (budget, ungrounded) = (plan.summary_budget, Ungrounded::Remove);
                let options = RepairOptions { budget, counter: &counter, ungrounded };
                // A repair begins with an audit.
                Ok(repair(&draft, &found.required, &sources, &options))
            };
            Ok(cpu_s(work)?.0 * 1e3)
        };
        let sides: [Side<'_>; 2] = [Box::new(ours), Box::new(parse)];
        let [ours, limit] = medians(effort.rounds(15), sides)?;
        let what = format!(
            "plan, facts, audit and repair of a compaction of 200k tokens in a session of {name}, whose \
             messages were read before: CPU"
        );
        let mut figure = Figure::new(format!("compact-{name}"), what, "ms", ours);
        if from == last
            && let Some(theirs) = langchain_ms(&texts, effort.rounds(15))?
        {
            figure = figure.beside_peer(LANGCHAIN, theirs);
        }
        print(figure.beside_limit(PARSE, limit));
    }
    Ok(())
}
