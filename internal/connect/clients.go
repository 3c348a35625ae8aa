package connect

// Client is a program that can be made to use a gateway: where its settings
// are, and what they are to say. All that Limen knows of a client is its row
// in the table.
type Client struct {
	Name    string // as people type it
	Title   string // as its makers write it
	Command string // its program, by which it is found
	// Dirs are where its settings may be, each below a variable's folder, or
	// below the home where the variable is empty or not set. The first whose
	// variable is set counts, else the last.
	Dirs  []Dir
	Files []string // their file; the first that exists counts, else the last
	// Hides is a file that the client leaves unread once Files exist.
	Hides string
	// Start is what a file begins with that was not there.
	Start    string
	Format   format
	Settings []Setting
	// Overrides are settings of the same file that go before these.
	Overrides []path
	// Variable is where the client reads the key from; empty when the file
	// holds it.
	Variable string
	ByHand   []string // what no file can hold, as sentences
}

// Dir is a folder of settings.
type Dir struct{ Variable, Below string }

// Setting is a value in a client's file. Its path and value may have the
// names of what they depend on: {base} and {root}, the address with /v1 and
// without; {key}; {model}; {context} and {output}, the model's limits in
// tokens, which are numbers; {now}, which any
// later time is as good as. "{context:128000}" says what is assumed
// where it is not known; without that the setting is left out.
type Setting struct {
	Path  path
	Value string
	With  string // a limit without which the setting is left out as well
}

// ours is what settings have as a name that are Limen's as a whole. An undo
// takes them away as such.
const ours = "limen"

// keyVariable is the variable that clients are told to read the key from.
const keyVariable = "LIMEN_KEY"

// Clients are all that are known, by name.
var Clients = []Client{
	{
		Name: "aider", Title: "Aider", Command: "aider",
		Dirs: []Dir{{}}, Files: []string{".aider.conf.yml"}, Format: yamlFormat,
		Settings: []Setting{
			{Path: path{"model"}, Value: "openai/{model}"}, // openai is the protocol, whatever the model
			// Of models that it knows, it takes others of their vendor for small things and for edits.
			{Path: path{"weak-model"}, Value: "openai/{model}"},
			{Path: path{"editor-model"}, Value: "openai/{model}"},
			{Path: path{"openai-api-base"}, Value: "{base}"},
			{Path: path{"openai-api-key"}, Value: "{key}"},
		},
		ByHand: []string{"An .aider.conf.yml in a repository goes before this one."},
	},
	{
		Name: "claude", Title: "Claude Code", Command: "claude",
		Dirs: []Dir{{Variable: "CLAUDE_CONFIG_DIR"}, {Below: ".claude"}}, Files: []string{"settings.json"}, Format: jsonFormat,
		Settings: []Setting{
			{Path: path{"env", "ANTHROPIC_BASE_URL"}, Value: "{root}"},
			{Path: path{"env", "ANTHROPIC_AUTH_TOKEN"}, Value: "{key}"},
			{Path: path{"env", "ANTHROPIC_MODEL"}, Value: "{model}"},
			{Path: path{"env", "ANTHROPIC_DEFAULT_OPUS_MODEL"}, Value: "{model}"},
			{Path: path{"env", "ANTHROPIC_DEFAULT_SONNET_MODEL"}, Value: "{model}"},
			{Path: path{"env", "ANTHROPIC_DEFAULT_HAIKU_MODEL"}, Value: "{model}"},
		},
		Overrides: []path{
			{"env", "ANTHROPIC_API_KEY"}, {"env", "CLAUDE_CODE_USE_BEDROCK"}, {"env", "CLAUDE_CODE_USE_VERTEX"}, {"env", "CLAUDE_CODE_USE_FOUNDRY"},
		},
	},
	{
		Name: "cline", Title: "Cline", Command: "cline",
		Dirs:  []Dir{{"CLINE_DATA_DIR", "settings"}, {"CLINE_DIR", "data/settings"}, {Below: ".cline/data/settings"}},
		Files: []string{"providers.json"}, Format: jsonFormat,
		Start: "{\n  \"version\": 1,\n  \"modes\": {}\n}\n",
		Settings: []Setting{
			{Path: path{"lastUsedProvider"}, Value: "openai-compatible"},
			{Path: path{"providers", "openai-compatible", "settings", "provider"}, Value: "openai-compatible"},
			{Path: path{"providers", "openai-compatible", "settings", "apiKey"}, Value: "{key}"},
			{Path: path{"providers", "openai-compatible", "settings", "model"}, Value: "{model}"},
			{Path: path{"providers", "openai-compatible", "settings", "baseUrl"}, Value: "{base}"},
			{Path: path{"providers", "openai-compatible", "updatedAt"}, Value: "{now}"},
			{Path: path{"providers", "openai-compatible", "tokenSource"}, Value: "manual"},
		},
		ByHand: []string{
			"Releases of the editors' extension that keep the key in the editor's own secret storage do not read this file: choose \"OpenAI Compatible\" in its settings, and enter the base URL, the key and the model there.",
		},
	},
	{
		Name: "codex", Title: "Codex", Command: "codex",
		Dirs: []Dir{{Variable: "CODEX_HOME"}, {Below: ".codex"}}, Files: []string{"config.toml"}, Format: tomlFormat,
		Settings: []Setting{
			{Path: path{"model"}, Value: "{model}"},
			{Path: path{"model_provider"}, Value: ours},
			{Path: path{"model_context_window"}, Value: "{context}"},
			{Path: path{"model_providers", ours, "name"}, Value: "Limen"},
			{Path: path{"model_providers", ours, "base_url"}, Value: "{base}"},
			{Path: path{"model_providers", ours, "env_key"}, Value: keyVariable},
			{Path: path{"model_providers", ours, "wire_api"}, Value: "responses"},
		},
		Overrides: []path{{"profile"}},
		Variable:  keyVariable,
	},
	{
		Name: "continue", Title: "Continue", Command: "cn",
		Dirs: []Dir{{Variable: "CONTINUE_GLOBAL_DIR"}, {Below: ".continue"}}, Files: []string{"config.yaml"}, Format: yamlFormat,
		Hides: "config.json",
		Start: "name: Local Config\nversion: 1.0.0\nschema: v1\n",
		Settings: []Setting{
			{Path: path{"models", "[name={model} (Limen)]", "name"}, Value: "{model} (Limen)"},
			{Path: path{"models", "[name={model} (Limen)]", "provider"}, Value: "openai"},
			{Path: path{"models", "[name={model} (Limen)]", "model"}, Value: "{model}"},
			{Path: path{"models", "[name={model} (Limen)]", "apiBase"}, Value: "{base}"},
			{Path: path{"models", "[name={model} (Limen)]", "apiKey"}, Value: "${{ secrets." + keyVariable + " }}"},
			{Path: path{"models", "[name={model} (Limen)]", "capabilities", "[=tool_use]"}},
			{Path: path{"models", "[name={model} (Limen)]", "defaultCompletionOptions", "contextLength"}, Value: "{context}"},
		},
		Variable: keyVariable,
		ByHand: []string{
			"In editors, Continue does not see the shell's variables: put the line " + keyVariable + "=KEY into .env beside config.yaml.",
		},
	},
	{
		Name: "opencode", Title: "opencode", Command: "opencode",
		Dirs: []Dir{{"XDG_CONFIG_HOME", "opencode"}, {Below: ".config/opencode"}}, Files: []string{"opencode.jsonc", "opencode.json"}, Format: jsonFormat,
		Start: "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
		Settings: []Setting{
			{Path: path{"model"}, Value: ours + "/{model}"},
			{Path: path{"small_model"}, Value: ours + "/{model}"},
			{Path: path{"provider", ours, "npm"}, Value: "@ai-sdk/openai-compatible"},
			{Path: path{"provider", ours, "name"}, Value: "Limen"},
			{Path: path{"provider", ours, "options", "baseURL"}, Value: "{base}"},
			{Path: path{"provider", ours, "options", "apiKey"}, Value: "{env:" + keyVariable + "}"},
			{Path: path{"provider", ours, "models", "{model}", "name"}, Value: "{model}"},
			{Path: path{"provider", ours, "models", "{model}", "limit", "context"}, Value: "{context}", With: "{output}"},
			{Path: path{"provider", ours, "models", "{model}", "limit", "output"}, Value: "{output}", With: "{context}"},
		},
		Overrides: []path{{"disabled_providers"}, {"enabled_providers"}},
		Variable:  keyVariable,
		ByHand:    []string{"An opencode.json in a project goes before this one."},
	},
	{
		Name: "qwen-code", Title: "Qwen Code", Command: "qwen",
		Dirs: []Dir{{Variable: "QWEN_HOME"}, {Below: ".qwen"}}, Files: []string{"settings.json"}, Format: jsonFormat,
		Settings: []Setting{
			{Path: path{"modelProviders", "openai", "[name={model} (Limen)]", "name"}, Value: "{model} (Limen)"},
			{Path: path{"modelProviders", "openai", "[name={model} (Limen)]", "id"}, Value: "{model}"},
			{Path: path{"modelProviders", "openai", "[name={model} (Limen)]", "baseUrl"}, Value: "{base}"},
			{Path: path{"modelProviders", "openai", "[name={model} (Limen)]", "envKey"}, Value: keyVariable},
			{Path: path{"modelProviders", "openai", "[name={model} (Limen)]", "generationConfig", "contextWindowSize"}, Value: "{context}"},
			{Path: path{"security", "auth", "selectedType"}, Value: "openai"},
			{Path: path{"model", "name"}, Value: "{model}"},
			{Path: path{"model", "baseUrl"}, Value: "{base}"}, // models of one name are told apart by it
		},
		Variable: keyVariable,
	},
	{
		Name: "zed", Title: "Zed", Command: "zed",
		Dirs: []Dir{{"XDG_CONFIG_HOME", "zed"}, {Below: ".config/zed"}}, Files: []string{"settings.json"}, Format: jsonFormat,
		Settings: []Setting{
			{Path: path{"language_models", "openai_compatible", ours, "api_url"}, Value: "{base}"},
			{Path: path{"language_models", "openai_compatible", ours, "available_models", "[name={model}]", "name"}, Value: "{model}"},
			{Path: path{"language_models", "openai_compatible", ours, "available_models", "[name={model}]", "max_tokens"}, Value: "{context:128000}"},
			{Path: path{"language_models", "openai_compatible", ours, "available_models", "[name={model}]", "max_output_tokens"}, Value: "{output}"},
			{Path: path{"agent", "default_model", "provider"}, Value: ours},
			{Path: path{"agent", "default_model", "model"}, Value: "{model}"},
		},
		Variable: "LIMEN_API_KEY", // Zed makes it of the provider's name
		ByHand: []string{
			"Zed takes no key from its settings. Started from the desktop it does not see the shell's variables either: enter the key under Settings, AI, LLM Providers, limen; it is kept in the system's keychain.",
		},
	},
}
