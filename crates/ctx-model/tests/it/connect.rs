//! Model names resolved to models.

use std::sync::Arc;

use ctx_core::{ChatModel, Embedder, Error, ErrorKind, Summarizer, Tokens, Usage};
use ctx_model::{
    Api, Client, HttpModel, KeyRef, Prices, Provider, ProviderModel, connect, connect_embedder,
    connect_models,
};

fn client() -> Arc<Client> {
    Arc::new(Client::default())
}

/// A provider with a key, so that tests need no environment variables.
fn provider(id: &str) -> Provider {
    Provider {
        id: id.to_owned(),
        api_key: Some(KeyRef::parse("sk-test").unwrap()),
        ..Provider::default()
    }
}

fn at(model: &HttpModel) -> (String, Api, String, String) {
    let endpoint = model.endpoint();
    (endpoint.host(), endpoint.api(), model.facts().id.clone(), model.name().to_owned())
}

#[test]
fn names_resolve_to_providers() {
    let mut local = provider("local");
    local.base_url = Some("http://127.0.0.1:8080".to_owned());
    local.models = vec![
        ProviderModel { id: "tiny".to_owned(), ..ProviderModel::default() },
        ProviderModel { id: "org/deep/tiny".to_owned(), ..ProviderModel::default() },
    ];
    let mut openai = provider("openai");
    openai.base_url = None;
    let providers = [local, openai, provider("anthropic"), provider("openrouter")];
    for (name, host, api, id, full) in [
        (
            "openai/gpt-5-mini",
            "api.openai.com",
            Api::OpenAiResponses,
            "gpt-5-mini",
            "openai/gpt-5-mini",
        ),
        (
            "OpenAI/gpt-5-mini",
            "api.openai.com",
            Api::OpenAiResponses,
            "gpt-5-mini",
            "openai/gpt-5-mini",
        ),
        (
            "anthropic/claude-haiku-4.5",
            "api.anthropic.com",
            Api::AnthropicMessages,
            "claude-haiku-4-5",
            "anthropic/claude-haiku-4.5",
        ),
        (
            "claude-haiku-4-5-20251001",
            "api.anthropic.com",
            Api::AnthropicMessages,
            "claude-haiku-4-5-20251001",
            "anthropic/claude-haiku-4-5-20251001",
        ),
        (
            "openrouter/anthropic/claude-haiku-4.5",
            "openrouter.ai",
            Api::OpenAiCompletions,
            "anthropic/claude-haiku-4.5",
            "openrouter/anthropic/claude-haiku-4.5",
        ),
        (
            "ollama/qwen3:8b",
            "127.0.0.1:11434",
            Api::OpenAiCompletions,
            "qwen3:8b",
            "ollama/qwen3:8b",
        ),
        ("local/anything", "127.0.0.1:8080", Api::OpenAiCompletions, "anything", "local/anything"),
        ("tiny", "127.0.0.1:8080", Api::OpenAiCompletions, "tiny", "local/tiny"),
        (
            "org/deep/tiny",
            "127.0.0.1:8080",
            Api::OpenAiCompletions,
            "org/deep/tiny",
            "local/org/deep/tiny",
        ),
    ] {
        let model = connect(name, &providers, &client()).unwrap();
        assert_eq!(at(&model), (host.to_owned(), api, id.to_owned(), full.to_owned()), "{name}");
    }
    for name in ["", "/", "nobody/model", "no-such-model", "openai/"] {
        let error = connect(name, &providers, &client()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{name}");
        let hint = error.hint_text().unwrap();
        assert!(hint.contains("local") && hint.contains("ollama"), "{hint}");
    }
}

#[test]
fn windows_and_prices_come_from_the_configuration_then_the_catalogue() {
    let prices = Prices { input: 7.0, output: 8.0, cache_read: None, cache_write: None };
    let of = |name: &str, model: ProviderModel| {
        let id = name.split_once('/').unwrap().0;
        let providers = [Provider { models: vec![model], ..provider(id) }];
        connect(name, &providers, &client()).unwrap()
    };
    let set = |id: &str| ProviderModel { id: id.to_owned(), ..ProviderModel::default() };
    let million = Usage { input: 1_000_000, ..Usage::default() };

    let listed = of("anthropic/claude-opus-4-5", set("other"));
    assert_eq!((listed.window(), listed.cost(&million)), (Tokens(200_000), Some(5.0)));
    let own = ProviderModel {
        context_window: Some(50_000),
        context_tokens: Some(40_000),
        max_tokens: Some(1_000),
        prices: Some(prices),
        reasoning: Some(true),
        ..set("claude-opus-4-5")
    };
    let own = of("anthropic/claude-opus-4-5", own);
    assert_eq!((own.window(), own.cost(&million)), (Tokens(40_000), Some(7.0)));
    assert_eq!((own.facts().max_output, own.facts().reasoning), (Some(Tokens(1_000)), true));

    // A local server sets its own window and ignores the window of the cloud model.
    let local = of("ollama/gpt-4o", set("other"));
    assert_eq!((local.window(), local.cost(&million)), (Tokens(16_000), Some(0.0)));
    assert!(local.facts().truncates);
    let local =
        of("ollama/gpt-4o", ProviderModel { context_window: Some(65_536), ..set("gpt-4o") });
    assert_eq!(local.window(), Tokens(65_536));
    assert_eq!(of("lmstudio/unheard-of", set("x")).cost(&million), None);

    for (name, model, assumed) in [
        ("ollama/gpt-4o", set("gpt-4o"), true),
        ("lmstudio/unheard-of", set("x"), true),
        ("openai/gpt-4o", set("x"), false),
        ("ollama/x", ProviderModel { context_window: Some(16_000), ..set("x") }, false),
        ("ollama/x", ProviderModel { context_tokens: Some(9_000), ..set("x") }, false),
    ] {
        assert_eq!(of(name, model).facts().window_is_assumed, assumed, "{name}");
    }

    for (name, thinks) in [
        ("openai/gpt-5.1", true),
        ("openai/o4-mini", true),
        ("openai/gpt-5-chat-latest", false),
        ("openai/gpt-4o", false),
        ("openrouter/openai/gpt-5-mini", true),
        ("anthropic/claude-opus-4-5", false),
        ("ollama/o10n", false),
    ] {
        assert_eq!(of(name, set("x")).facts().reasoning, thinks, "{name}");
    }
}

#[test]
fn errors_of_invalid_settings_name_the_provider() {
    let refused = |p: Provider| -> Error {
        let name = format!("{}/m", p.id);
        connect(&name, &[p], &client()).unwrap_err()
    };
    let error = refused(provider("mine"));
    assert!(error.hint_text().unwrap().contains("models.providers.mine.baseUrl"));
    let error = refused(Provider { base_url: Some("nonsense".to_owned()), ..provider("mine") });
    assert!(error.to_string().contains("provider: mine"), "{error}");
    let error = refused(Provider { api: Some("gopher".to_owned()), ..provider("openai") });
    assert!(error.to_string().contains("provider: openai"), "{error}");
}

#[test]
fn a_missing_key_is_found_before_the_first_request_and_named() {
    let key = || Some(KeyRef::Env("CTX_TEST_NO_SUCH_KEY".to_owned()));
    let providers = [Provider { api_key: key(), ..provider("anthropic") }];
    let error = connect("anthropic/claude-haiku-4-5", &providers, &client()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capability);
    assert!(error.hint_text().unwrap().contains("CTX_TEST_NO_SUCH_KEY"), "{error:?}");
    // A built-in provider at a custom address may need no key.
    let url = Some("http://127.0.0.1:9".to_owned());
    let gateway = [Provider { base_url: url, api_key: None, ..provider("groq") }];
    connect("groq/x", &gateway, &client()).unwrap();
}

/// The environment is process-wide, so the test runs itself in a child process.
#[test]
fn the_environment_gives_url_and_key_unless_the_configuration_does() {
    const INSIDE: &str = "CTX_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_none() {
        let name = "the_environment_gives_url_and_key_unless_the_configuration_does";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("connect::{name}")])
            .env(INSIDE, "1")
            .env("OPENAI_BASE_URL", "http://127.0.0.1:7001/v1")
            .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:7002")
            .env("ANTHROPIC_API_KEY", "sk-from-outside")
            .env_remove("OPENAI_API_KEY")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let names = ["openai/gpt-5-mini", "anthropic/claude-haiku-4-5"].map(str::to_owned);
    let (chain, missing) = connect_models(&names, &[], &client());
    assert!(missing.is_empty(), "{missing:?}");
    let cards: Vec<_> = chain.iter().map(|model| model.card()).collect();
    // A custom server is assumed to be compatible with Chat Completions.
    assert_eq!(
        (cards[0].api.as_str(), cards[1].api.as_str()),
        ("openai-completions", "anthropic-messages")
    );
    assert_eq!((cards[1].provider.as_str(), cards[1].window), ("anthropic", Some(Tokens(200_000))));
    let openai = connect(&names[0], &[], &client()).unwrap();
    assert_eq!(openai.endpoint().host(), "127.0.0.1:7001");
    assert!(openai.endpoint().key().is_none(), "such a server may need no key");
    let anthropic = connect(&names[1], &[], &client()).unwrap();
    assert_eq!(anthropic.endpoint().chat_url().as_str(), "http://127.0.0.1:7002/v1/messages");
    assert_eq!(anthropic.endpoint().key(), Some(&KeyRef::Env("ANTHROPIC_API_KEY".to_owned())));
    let set = Provider { base_url: Some("http://127.0.0.1:7003".to_owned()), ..provider("openai") };
    let openai = connect(&names[0], &[set], &client()).unwrap();
    assert_eq!(openai.endpoint().host(), "127.0.0.1:7003");
    assert_ne!(openai.endpoint().key(), None);
}

#[test]
fn a_chain_skips_models_that_cannot_be_created() {
    let url = || Some("http://127.0.0.1:9".to_owned());
    let providers = [Provider { base_url: url(), ..provider("gate") }];
    let names = ["gate/one", "two", "nobody/three", "four"].map(str::to_owned);
    let (chain, missing) = connect_models(&names, &providers, &client());
    let found: Vec<_> = chain.iter().map(|model| model.name()).collect();
    assert_eq!(found, ["gate/one", "gate/two", "gate/four"]);
    assert!(chain.iter().all(|model| model.facts().window_is_assumed), "no source knows it");
    assert_eq!(missing.len(), 1);
    assert!(missing[0].to_string().contains("nobody/three"));
    assert!(connect_models(&[], &providers, &client()).0.is_empty());
}

#[test]
fn embedders_know_the_length_of_their_vectors() {
    let providers = [provider("openai"), provider("anthropic")];
    let of =
        |name: &str, wanted: Option<usize>| connect_embedder(name, wanted, &providers, &client());
    for (name, wanted, expected) in [
        ("openai/text-embedding-3-small", None, "openai/text-embedding-3-small#1536"),
        ("openai/text-embedding-3-large", Some(256), "openai/text-embedding-3-large#256"),
        ("ollama/nomic-embed-text:v1.5", None, "ollama/nomic-embed-text:v1.5#768"),
        ("ollama/unheard-of", Some(42), "ollama/unheard-of#42"),
    ] {
        assert_eq!(of(name, wanted).unwrap().name(), expected);
    }
    assert_eq!(of("ollama/unheard-of", None).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(of("ollama/unheard-of", Some(0)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let error = of("anthropic/claude-haiku-4-5", Some(3)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capability);
}
