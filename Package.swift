// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Modules and layers: docs/architecture.md. A module imports only its own layer and lower ones, and only modules that
// are declared here; the compiler does not enforce that, `scripts/check` does.
import PackageDescription

/// `DEVICE_ONLY=1` leaves out the token server, its packages and the tests that start it. A board that builds its own
/// software then needs a small part of the time and memory.
let hasTokenServer = Context.environment["DEVICE_ONLY"] == nil

/// `FUZZING=1` adds the fuzzer, and `BENCHMARKS=1` the benchmarks: as targets of this package they see what has
/// `package` access. `scripts/fuzz` and `scripts/bench` set them.
let hasFuzzer = Context.environment["FUZZING"] != nil
let hasBenchmarks = Context.environment["BENCHMARKS"] != nil

/// `WARNINGS_AS_ERRORS=1` is set by `.ci/run`; other builds only warn.
let strictness: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
  ] + (Context.environment["WARNINGS_AS_ERRORS"] == nil ? [] : [.treatAllWarnings(as: .error)])

/// The product's modules are optimized in debug builds, too: it saves a fifth of the processor time of the tests, which
/// run optimized code, as is shipped. `NOT_OPTIMIZED=1` is for a debugger.
let optimized: [SwiftSetting] =
  hasFuzzer || Context.environment["NOT_OPTIMIZED"] != nil
  ? [] : [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// Commands and services wait more than they compute: their release builds are small rather than fast.
let small: [SwiftSetting] = [.unsafeFlags(["-Osize"], .when(configuration: .release))]

/// The layers are the folders of `Sources/`.
enum Layer: String { case system, foundations, domain, adapters, hardware, server, testKit, programs }

func path(_ name: String, _ layer: Layer) -> String {
  "Sources/" + layer.rawValue.prefix(1).uppercased() + layer.rawValue.dropFirst() + "/" + name
}

func systemLibrary(_ name: String, pkgConfig: String, debian: String) -> Target {
  .systemLibrary(name: name, path: path(name, .system), pkgConfig: pkgConfig, providers: [.apt([debian])])
}

/// A library of the system that is loaded when it is first used, and so is not linked. `functions.S` has the names of
/// its functions, packaging/debian/control that of its package.
func delayLoadedLibrary(_ name: String) -> Target {
  .target(name: name, dependencies: ["CDelayLoad"], path: path(name, .system))
}

func module(
  _ name: String, in layer: Layer, over dependencies: [Target.Dependency] = [], resources: [Resource] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: path(name, layer), resources: resources,
    swiftSettings: strictness + optimized + (layer == .programs ? small : []))
}

/// Links the Swift libraries into debug builds of a program, too: tests start programs thousands of times, and the
/// symbols of shared libraries take about a third of a start. Release builds do so with `--static-swift-stdlib`. At a
/// fixed address, a program's own addresses need not be corrected at its start.
func startsQuickly(with libraries: [String]) -> [LinkerSetting] {
  // Passed on to the linker as they are, so that they come after the modules that need them.
  let flags = ["-static-stdlib", "-Xclang-linker", "-no-pie"] + libraries.flatMap { ["-Xlinker", "-l\($0)"] }
  return [.unsafeFlags(flags, .when(configuration: .debug))]
}

let foundationEssentials = ["FoundationEssentials", "_FoundationCShims", "_FoundationCollections"]
let foundation = ["Foundation", "CoreFoundation", "FoundationInternationalization", "_FoundationICU"]

/// - Parameter libraries: those of Foundation that a debug build links in; nil for shared libraries.
func program(
  _ name: String, over dependencies: [Target.Dependency], linking libraries: [String]? = nil,
  settings: [LinkerSetting] = []
) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: path(name, .programs), swiftSettings: strictness + optimized,
    linkerSettings: (libraries.map(startsQuickly) ?? []) + settings)
}

func tests(_ name: String, of dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, resources: resources, swiftSettings: strictness)
}

/// - Parameter computes: optimized in debug builds, too.
func testSupport(_ name: String, over dependencies: [Target.Dependency], computes: Bool = false) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Tests/Support/\(name)",
    swiftSettings: strictness + (computes ? optimized : []))
}

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let signals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")

/// Of the token server, and of the fuzzer.
let nio = Package.Dependency.package(url: "https://github.com/apple/swift-nio", from: "2.0.0")

/// None of these may be a dependency of a module that ships on the board.
let tokenServerPackages: [Package.Dependency] = [
  nio,
  .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
  .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
  .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
  .package(url: "https://github.com/apple/swift-http-types", from: "1.0.0"),
  .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
]

let tokenServerTargets: [Target] = [
  // Server: the reference token server.
  module("TokenServerMetrics", in: .server, over: [coreMetrics]),
  module(
    "TokenServerCore", in: .server,
    over: ["ReferenceProtocol", "Cryptography", "DisplayText", "OpenPGP", "Secrets", logging, coreMetrics]),
  // SQLite, libpq, and all SQL.
  delayLoadedLibrary("CPostgreSQL"),
  module(
    "TokenServerStore", in: .server,
    over: [
      "TokenServerCore", "ReferenceProtocol", "Cryptography", "CPostgreSQL", "SQLite", "Threads",
    ]),
  module(
    "TokenServerHTTP", in: .server,
    over: [
      "TokenServerCore", "TokenServerStore", "TokenServerMetrics", "ReferenceProtocol", "Cryptography", "DisplayText",
      "JSONValues", "OpenPGP", "Secrets", logging, lifecycle, coreMetrics,
      .product(name: "Hummingbird", package: "hummingbird"),
      .product(name: "HummingbirdTLS", package: "hummingbird"),
      .product(name: "HummingbirdCore", package: "hummingbird"),
      .product(name: "HTTPTypes", package: "swift-http-types"),
      .product(name: "NIOCore", package: "swift-nio"),
      .product(name: "NIOHTTP1", package: "swift-nio"),
      .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
      .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
      .product(name: "NIOPosix", package: "swift-nio"),
      .product(name: "NIOSSL", package: "swift-nio-ssl"),
    ],
    // Part of the program, which is one file.
    resources: [.embedInCode("Portal/portal-api.openapi.json")]),
  module(
    "ReferenceServer", in: .server,
    over: [
      "TokenServerCore", "TokenServerStore", "TokenServerHTTP", "TokenServerMetrics", "MQTT", "HTTP",
      "ReferenceProtocol", "Cryptography", "DisplayText", "Secrets", "COpenSSL", "CSpawn", "TOMLSyntax", "Threads",
      argumentParser, logging, lifecycle, signals, coreMetrics,
      .product(name: "NIOCore", package: "swift-nio"),
      .product(name: "NIOHTTP1", package: "swift-nio"),
      .product(name: "NIOPosix", package: "swift-nio"),
      .product(name: "NIOSSL", package: "swift-nio-ssl"),
    ]),
  program(
    "token-server", over: ["ReferenceServer", "Secrets", argumentParser], linking: foundationEssentials + foundation),
  // The bench in a browser: a portal and a simulated board.
  .target(
    name: "BenchPage",
    dependencies: [
      "ControlProtocol", "Cryptography", "CSpawn", "CurlHTTP", "HTTP", "JSONValues", "Threads", "UnixSockets",
      argumentParser, logging, lifecycle, signals,
      .product(name: "Hummingbird", package: "hummingbird"),
      .product(name: "HummingbirdCore", package: "hummingbird"),
      .product(name: "HTTPTypes", package: "swift-http-types"),
      .product(name: "NIOCore", package: "swift-nio"),
    ],
    path: path("BenchPage", .programs), exclude: ["Clock", "Page"], swiftSettings: strictness),
  program("approval-bench", over: ["BenchPage", argumentParser], linking: foundationEssentials + foundation),
  tests(
    "BenchPageTests",
    of: [
      "BenchPage", "ControlProtocol", "Cryptography", "FrontPanel", "JSONValues", "Threads", "UnixSockets",
      argumentParser,
    ]),

  .target(
    name: "ServerTestSupport",
    dependencies: [
      "BuiltPrograms", "CCurl", "FreePorts", "ReferenceProtocol", "Cryptography", "OpenPGP", "Secrets",
    ],
    path: "Tests/ServerTestSupport", swiftSettings: strictness),
  tests(
    "ReferenceServerTests",
    of: [
      "ApprovalTestKit", "BuiltPrograms", "DisplayText", "OpenSSLProgram", "ReferenceServer", "TokenServerCore",
      "TokenServerStore", "TokenServerHTTP", "TokenServerMetrics", "JSONSchema", "JSONValues", "RecordedLog",
      "ServerTestSupport", "SQLite", "Threads",
      "ReferenceProtocol", "Cryptography", "OpenPGP", "Secrets", logging, coreMetrics,
      .product(name: "HTTPTypes", package: "swift-http-types"),
      .product(name: "Hummingbird", package: "hummingbird"),
      .product(name: "HummingbirdCore", package: "hummingbird"),
      .product(name: "NIOCore", package: "swift-nio"),
      .product(name: "NIOEmbedded", package: "swift-nio"),
      .product(name: "NIOHTTP1", package: "swift-nio"),
      .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
      .product(name: "NIOPosix", package: "swift-nio"),
      .product(name: "NIOSSL", package: "swift-nio-ssl"),
    ]),
  tests(
    "PortalConformance",
    of: ["BuiltPrograms", "JSONSchema", "ServerTestSupport", "ReferenceProtocol", "Cryptography", "Secrets"],
    resources: [.copy("Fixtures/callback_sink.py")]),
  tests(
    "Scale",
    of: [
      "ApprovalTestKit", "BuiltPrograms", "ProgramHarness", "ServerTestSupport", "ReferenceProtocol", "Cryptography",
      "Secrets",
    ]),
  testSupport(
    "TestAMServer",
    over: [
      "TestAM", logging,
      .product(name: "Hummingbird", package: "hummingbird"),
      .product(name: "HummingbirdCore", package: "hummingbird"),
      .product(name: "HummingbirdTLS", package: "hummingbird"),
      .product(name: "HTTPTypes", package: "swift-http-types"),
      .product(name: "NIOCore", package: "swift-nio"),
      .product(name: "NIOSSL", package: "swift-nio-ssl"),
    ]),
  tests(
    "EndToEnd",
    of: [
      "ApprovalTestKit", "BuiltPrograms", "ControlProtocol", "Cryptography", "FreePorts", "HTTP", "JSONSchema",
      "JSONValues", "MobileAuth", "OpenPGP", "ProgramHarness", "ReferenceAdapter", "ReferenceProtocol", "RelayProtocol",
      "Secrets",
      "TestAM", "TestAMServer", "TestBadge", "TestSecurityKey", "Threads", "TokenDaemon", "UnixSockets", "reader-badge",
      "reader-key-probe",
    ], resources: [.copy("Fixtures")]),
]

/// The modules whose parsers are fuzzed.
let fuzzed: [Target.Dependency] = [
  "ApprovalTestKit", "AuthenticatorPlugins", "Boards", "CCards", "CPlugIn", "CReaderBadge", "CReaderKey",
  "ControlProtocol", "Cryptography",
  "CurlHTTP", "DisplayText", "FrontPanel", "GPIO",
  "HIDReports", "HTTP", "JSONValues", "MQTT", "MobileAuth", "NetworkDaemon", "OATHAdapter", "OpenPGP", "PINProtection",
  "PingAMAdapter",
  "PrivacyIDEAAdapter", "ReferenceAdapter", "ReferenceProtocol", "RegistrationURIs", "RelayProtocol", "SQLite",
  "Secrets",
  "ServerBackends", "TOMLSyntax", "TokenDaemon", "USBKeypad", "UnixSockets", "Vault",
]

/// For the fuzzer, parsers in C are measured as those in Swift, and undefined behavior ends the program.
let fuzzedC: [CSetting] =
  hasFuzzer
  ? [.unsafeFlags(["-fsanitize=fuzzer-no-link", "-fsanitize=undefined", "-fsanitize-trap=undefined"])] : []

/// The parser of HTTP/1.1 that the token server uses.
let fuzzedNIO: [Target.Dependency] = ["NIOCore", "NIOEmbedded", "NIOHTTP1"].map {
  .product(name: $0, package: "swift-nio")
}

/// Built with -sanitize=fuzzer for every module, so that libFuzzer measures the coverage of the parsers.
let fuzzerTargets: [Target] = [
  // The token server's parsers that do not need Hummingbird, as symbolic links.
  .target(
    name: "ServerParsers", dependencies: fuzzed + fuzzedNIO, path: "Fuzzing/Sources/ServerParsers",
    swiftSettings: strictness),
  .executableTarget(
    name: "fuzz", dependencies: fuzzed + fuzzedNIO + ["ServerParsers", logging], path: "Fuzzing/Sources/fuzz",
    swiftSettings: strictness),
]

/// The benchmarks of docs/benchmarks.md.
let benchmarkTargets: [Target] = [
  .systemLibrary(name: "CBench", path: "Benchmarks/Sources/CBench", providers: [.apt(["libssl-dev"])]),
  .executableTarget(
    name: "bench",
    dependencies: [
      "CBench", "Boards", "Cryptography", "FrontPanel", "GPIO", "HIDReports", "MobileAuth", "OpenPGP", "PINProtection",
      "ReferenceProtocol", "Secrets", "TestAM", "USBKeypad", "Vault", argumentParser,
    ],
    path: "Benchmarks/Sources/bench", swiftSettings: strictness),
  // The reference programs for the panel, in the bench kernel.
  .executableTarget(
    name: "reference-gpio", path: "Benchmarks/Sources/reference-gpio", linkerSettings: [.linkedLibrary("gpiod")]),
  .executableTarget(
    name: "reference-usb", path: "Benchmarks/Sources/reference-usb", linkerSettings: [.linkedLibrary("usb-1.0")]),
  .executableTarget(
    name: "timing", dependencies: ["ApprovalTestKit", "HIDReports", "PINProtection", "Secrets"],
    path: "Benchmarks/Sources/timing", swiftSettings: strictness),
]

let package = Package(
  name: "approval-token",
  products: [
    .executable(name: "approval-token", targets: ["approval-token"]),
    .executable(name: "approval-tokend", targets: ["approval-tokend"]),
    .executable(name: "approval-token-network", targets: ["approval-token-network"]),
  ] + (hasTokenServer ? [.executable(name: "token-server", targets: ["token-server"])] : []),
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ] + (hasTokenServer ? tokenServerPackages : []),
  targets: [
    // System: one library each.
    .target(name: "CDelayLoad", path: path("CDelayLoad", .system)),
    .systemLibrary(name: "CLinux", path: path("CLinux", .system)),
    .systemLibrary(name: "CSpawn", path: path("CSpawn", .system)),
    systemLibrary("COpenSSL", pkgConfig: "libcrypto", debian: "libssl-dev"),
    delayLoadedLibrary("CTLS"),
    delayLoadedLibrary("CRNP"),
    delayLoadedLibrary("CCurl"),
    systemLibrary("CSQLite", pkgConfig: "sqlite3", debian: "libsqlite3-dev"),
    systemLibrary("CGPIOD", pkgConfig: "libgpiod", debian: "libgpiod-dev"),
    delayLoadedLibrary("CUSB"),
    delayLoadedLibrary("CMosquitto"),
    systemLibrary("CFIDO2", pkgConfig: "libfido2", debian: "libfido2-dev"),
    // In C: small programs that run for a second, with a user of their own.
    .target(name: "CPlugIn", path: path("CPlugIn", .system), cSettings: fuzzedC),
    systemLibrary("CPCSC", pkgConfig: "libpcsclite", debian: "libpcsclite-dev"),
    .target(name: "CCards", dependencies: ["CPCSC"], path: path("CCards", .system), cSettings: fuzzedC),
    .target(
      name: "CReaderBadge", dependencies: ["CCards", "COpenSSL", "CPlugIn"], path: path("CReaderBadge", .system),
      cSettings: fuzzedC),
    .target(
      name: "CReaderKey", dependencies: ["CCards", "CFIDO2", "CPlugIn"], path: path("CReaderKey", .system),
      cSettings: fuzzedC),
    // Not a system module: the library is C++ without a compiled part (libtomlplusplus-dev).
    .target(name: "CTOMLPlusPlus", path: path("CTOMLPlusPlus", .system)),

    // Foundations: Swift interfaces of the system libraries, and what needs no domain.
    module("Secrets", in: .foundations, over: ["CLinux", "COpenSSL"]),
    module("Cryptography", in: .foundations, over: ["DisplayText", "Secrets", "Threads", "COpenSSL"]),
    module("OpenPGP", in: .foundations, over: ["Secrets", "CRNP"]),
    module("Threads", in: .foundations, over: ["CLinux"]),
    module("HTTP", in: .foundations, over: ["DisplayText"]),
    module("CertificateTrust", in: .foundations, over: ["CLinux", "HTTP", "COpenSSL", "CTLS"]),
    module(
      "CurlHTTP", in: .foundations,
      over: ["CertificateTrust", "DisplayText", "HTTP", "CCurl", "COpenSSL", "CTLS", "Threads"]),
    module(
      "MQTT", in: .foundations,
      over: ["CertificateTrust", "CMosquitto", "COpenSSL", "CTLS", "HTTP", "Secrets", "Threads"]),
    module("JSONValues", in: .foundations, over: ["DisplayText", "Threads"]),
    module("DisplayText", in: .foundations),
    module("UnixSockets", in: .foundations),
    module("ControlProtocol", in: .foundations, over: ["JSONValues", "UnixSockets"]),
    module(
      "RelayProtocol", in: .foundations,
      over: ["CLinux", "DisplayText", "HTTP", "MQTT", "Secrets", "Threads", "UnixSockets"]),
    module("TOMLSyntax", in: .foundations, over: ["CTOMLPlusPlus"]),
    module("SQLite", in: .foundations, over: ["CSQLite"]),
    module("PINProtection", in: .foundations, over: ["Secrets", "Cryptography", "Threads"]),
    module("ReferenceProtocol", in: .foundations, over: ["Cryptography", "JSONValues", "Secrets"]),

    // Domain: with the panel and the vault.
    module("MobileAuth", in: .domain, over: ["DisplayText", "Secrets", "Threads"]),
    module(
      "ServerBackends", in: .domain,
      over: ["MobileAuth", "HTTP", "Cryptography", "DisplayText", "JSONValues", "PINProtection", "Secrets"]),
    module("FrontPanel", in: .domain, over: ["MobileAuth", "Secrets"]),
    module(
      "Vault", in: .domain,
      over: ["MobileAuth", "PINProtection", "Cryptography", "DisplayText", "Secrets", "SQLite", "Threads"]),

    // Adapters: the clients of token servers.
    module(
      "ReferenceAdapter", in: .adapters,
      over: [
        "ServerBackends", "MobileAuth", "ReferenceProtocol", "Cryptography", "DisplayText", "OpenPGP", "HTTP",
        "PINProtection", "Secrets", "Threads",
      ]),
    module(
      "PrivacyIDEAAdapter", in: .adapters,
      over: [
        "ServerBackends", "MobileAuth", "Cryptography", "DisplayText", "HTTP", "JSONValues", "Secrets", "PINProtection",
        "Threads",
      ]),
    // The URIs of push mechanisms of PingAM and of one-time passwords. AM writes both, with its own policies.
    module(
      "RegistrationURIs", in: .adapters,
      over: ["ServerBackends", "MobileAuth", "Cryptography", "DisplayText", "Secrets"]),
    module(
      "PingAMAdapter", in: .adapters,
      over: [
        "RegistrationURIs", "ServerBackends", "MobileAuth", "Cryptography", "DisplayText", "HTTP", "JSONValues",
        "Secrets", "PINProtection",
      ]),
    module(
      "OATHAdapter", in: .adapters,
      over: ["RegistrationURIs", "ServerBackends", "MobileAuth", "DisplayText", "PINProtection", "Secrets"]),

    // Hardware: its modules, and the boards over the panel of the domain.
    module("HIDReports", in: .hardware, over: ["Secrets"]),
    module("DeviceNodes", in: .hardware),
    module("GPIO", in: .hardware, over: ["CGPIOD", "DeviceNodes", "Threads"]),
    module("USBKeypad", in: .hardware, over: ["CUSB", "DeviceNodes", "HIDReports", "Secrets", "Threads"]),
    module(
      "Boards", in: .hardware,
      over: [
        "Cryptography", "DisplayText", "FrontPanel", "GPIO", "MobileAuth", "Secrets", "TOMLSyntax", "Threads",
        "USBKeypad",
      ]),

    // The drivers of authenticators that are other programs.
    module(
      "AuthenticatorPlugins", in: .hardware,
      over: [
        "CSpawn", "DisplayText", "JSONValues", "MobileAuth", "Secrets", "Threads", "TOMLSyntax", "UnixSockets",
      ]),

    // TestKit: scripted and simulated parts for tests.
    module("ApprovalTestKit", in: .testKit, over: ["MobileAuth", "HTTP", "Secrets"]),

    // Programs: with their modules.
    // No vault, keys or hardware, and nothing that takes memory without need: neither Foundation nor a package.
    module(
      "NetworkDaemon", in: .programs,
      over: ["CLinux", "CurlHTTP", "HTTP", "MQTT", "RelayProtocol", "Secrets", "Threads", "UnixSockets"]),
    program(
      "approval-token-network", over: ["NetworkDaemon", "Secrets", "Threads"], linking: [],
      // Nothing else in its process needs the shared libstdc++.
      settings: [
        .unsafeFlags(["-L\(Context.packageDirectory)/packaging/static-libstdc++"], .when(configuration: .release))
      ]),
    module(
      "TokenDaemon", in: .programs,
      over: [
        "AuthenticatorPlugins", "Boards", "CLinux", "ControlProtocol", "HTTP", "Cryptography", "CurlHTTP",
        "DisplayText", "FrontPanel",
        "JSONValues", "MQTT", "MobileAuth", "NetworkDaemon", "PINProtection",
        "OATHAdapter", "PingAMAdapter", "PrivacyIDEAAdapter", "ReferenceAdapter", "RelayProtocol",
        "Secrets", "ServerBackends", "TOMLSyntax", "Threads", "UnixSockets", "Vault", logging, lifecycle,
      ]),
    // No storage, hardware or network; `scripts/check` checks that.
    module(
      "ApprovalTokenCommands", in: .programs,
      over: [
        "CLinux", "ControlProtocol", "DisplayText", "FrontPanel", "JSONValues", "MobileAuth", "Secrets", "Threads",
        argumentParser,
      ]),
    module(
      "OneShotCommands", in: .programs,
      over: [
        "ApprovalTokenCommands", "Boards", "CLinux", "ControlProtocol", "Cryptography", "DisplayText", "MobileAuth",
        "NetworkDaemon", "RelayProtocol", "Secrets", "ServerBackends", "TokenDaemon", "Vault", argumentParser,
      ]),
    program(
      "approval-token", over: ["ApprovalTokenCommands", "Secrets", argumentParser], linking: foundationEssentials),
    program("approval-tokend", over: ["OneShotCommands", "Secrets", "Threads"], linking: foundationEssentials),
    program("reader-badge", over: ["CReaderBadge"]),
    program("reader-key", over: ["CReaderKey"]),

    tests("ConstantTime", of: ["BuiltPrograms"]),
    // Built for release, and run with valgrind by the tests above.
    .executableTarget(
      name: "constant-time-probe",
      dependencies: [
        "CMemcheck", "Cryptography", "FrontPanel", "HIDReports", "MobileAuth", "PINProtection", "Secrets",
      ],
      path: "Tests/Support/constant-time-probe", swiftSettings: strictness),
    .systemLibrary(name: "CMemcheck", path: "Tests/Support/CMemcheck", providers: [.apt(["valgrind"])]),
    tests("ThreadsTests", of: ["ApprovalTestKit", "Threads"]),
    tests("HIDReportsTests", of: ["HIDReports", "Secrets"]),
    tests("PINProtectionTests", of: ["PINProtection", "Cryptography", "Secrets"]),
    tests("OpenPGPTests", of: ["OpenPGP", "CRNP", "Secrets"]),

    // Tests of a module are named after it; tests of several modules are named after their kind.
    tests("ReferenceProtocolTests", of: ["ReferenceProtocol", "Cryptography", "JSONValues", "Secrets"]),
    tests(
      "ReferenceAdapterTests",
      of: [
        "ReferenceAdapter", "ReferenceProtocol", "MobileAuth", "HTTP", "OpenPGP", "Cryptography", "Secrets",
        "PINProtection", "ServerBackends", "ApprovalTestKit", "OfflineAttack", "Vault",
      ]),
    tests(
      "PrivacyIDEAAdapterTests",
      of: [
        "PrivacyIDEAAdapter", "ServerBackends", "MobileAuth", "HTTP", "Cryptography", "JSONValues", "Secrets",
        "ApprovalTestKit",
      ],
      resources: [.copy("Fixtures")]),
    tests(
      "PingAMAdapterTests",
      of: [
        "PingAMAdapter", "RegistrationURIs", "ServerBackends", "MobileAuth", "HTTP", "Cryptography", "JSONValues",
        "PINProtection", "Secrets", "Vault", "ApprovalTestKit", "TestAM",
      ],
      resources: [.copy("Fixtures")]),
    tests(
      "BoardsTests", of: ["ApprovalTestKit", "Boards", "FrontPanel", "GPIO", "MobileAuth", "Secrets", "USBKeypad"]),
    tests("DisplayTextTests", of: ["DisplayText"]),
    tests("TOMLSyntaxTests", of: ["TOMLSyntax"]),
    tests("DeviceNodesTests", of: ["DeviceNodes"]),
    tests("GPIOTests", of: ["GPIO", "CGPIOD", "ApprovalTestKit"]),
    tests("USBKeypadTests", of: ["USBKeypad", "CUSB"]),
    // Runs inside scripts/bench-kernel, which boots the kernel with the files in Kernel/.
    .testTarget(
      name: "BenchKernel",
      dependencies: [
        "ApprovalTestKit", "Boards", "BuiltPrograms", "ControlProtocol", "FrontPanel", "GPIO", "MobileAuth", "Secrets",
        "TestBadge", "TestSecurityKey", "USBKeypad", "bench-probe", "reader-badge", "reader-key",
      ],
      exclude: ["Kernel"], swiftSettings: strictness),
    .executableTarget(
      name: "bench-probe", dependencies: ["GPIO"], path: "Tests/Support/bench-probe", swiftSettings: strictness),
    tests(
      "TokenDaemonTests",
      of: [
        "ApprovalTestKit", "AuthenticatorPlugins", "TokenDaemon", "ControlProtocol", "HTTP", "JSONSchema",
        "JSONValues", "MobileAuth", "Boards", "FrontPanel", "Cryptography", "OATHAdapter", "PINProtection",
        "RecordedLog", "SQLite", "Secrets",
        "ServerBackends", "Threads", "UnixSockets",
        "Vault", logging,
      ]),
    tests(
      "OneShotCommandsTests",
      of: [
        "OneShotCommands", "ApprovalTestKit", "ApprovalTokenCommands", "ControlProtocol", "FrontPanel", "JSONSchema",
        "JSONValues", "MobileAuth", "SQLite", "Secrets", "TokenDaemon", "UnixSockets", "Vault", argumentParser,
      ]),
    tests(
      "RelayProtocolTests",
      of: ["ApprovalTestKit", "HTTP", "MQTT", "RelayProtocol", "Secrets", "Threads", "UnixSockets"]),
    tests("ControlProtocolTests", of: ["ControlProtocol", "JSONValues", "UnixSockets"]),
    // With the device process's side of the relay.
    tests(
      "NetworkDaemonTests",
      of: [
        "ApprovalTestKit", "FreePorts", "HTTP", "MQTT", "MobileAuth", "NetworkDaemon", "RelayProtocol", "Threads",
        "TokenDaemon", "UnixSockets", logging,
      ]),
    tests("OATHAdapterTests", of: ["ApprovalTestKit", "OATHAdapter", "MobileAuth", "Secrets"]),
    tests(
      "ServerBackendsTests",
      of: ["ServerBackends", "MobileAuth", "HTTP", "Cryptography", "PINProtection", "Secrets", "ApprovalTestKit"]),
    tests(
      "ReaderKeyTests",
      of: [
        "ApprovalTestKit", "AuthenticatorPlugins", "BuiltPrograms", "CCards", "CPlugIn", "CReaderKey", "Cryptography",
        "MobileAuth", "Secrets", "TestBadge", "TestSecurityKey", "reader-key-probe",
      ]),
    tests(
      "ReaderBadgeTests",
      of: [
        "AuthenticatorPlugins", "BuiltPrograms", "Cryptography", "MobileAuth", "Secrets", "TestBadge", "reader-badge",
      ]),
    // A PIV card and pcscd with a virtual reader for tests.
    testSupport(
      "TestBadge", over: ["ApprovalTestKit", "BuiltPrograms", "COpenSSL", "Cryptography", "FreePorts", "Threads"]),
    // A FIDO2 key for tests, and `reader-key` with it in place of the hidraw nodes.
    testSupport("TestSecurityKey", over: ["Cryptography", "TestBadge", "Threads"]),
    .executableTarget(name: "reader-key-probe", dependencies: ["CReaderKey"], path: "Tests/Support/reader-key-probe"),
    tests(
      "AuthenticatorPluginsTests",
      of: [
        "ApprovalTestKit", "AuthenticatorPlugins", "JSONSchema", "JSONValues", "MobileAuth", "Secrets", "TOMLSyntax",
      ]),
    tests("MobileAuthTests", of: ["MobileAuth", "Secrets", "ApprovalTestKit"]),
    tests("FrontPanelTests", of: ["FrontPanel", "MobileAuth", "Secrets", "ApprovalTestKit"]),
    // What an attacker obtains with a PIN and a copy of the storage. The memory of a running token is searched for it.
    .executableTarget(
      name: "card-secrets",
      dependencies: [
        "ReferenceAdapter", "ReferenceProtocol", "PINProtection", "MobileAuth", "Vault", "Cryptography", "Secrets",
      ],
      path: "Tests/Support/card-secrets", swiftSettings: strictness),
    // Separate from the other interop tests, because it installs a server and takes a minute.
    tests(
      "InteropPrivacyIDEA",
      of: [
        "PrivacyIDEAAdapter", "MobileAuth", "CurlHTTP", "HTTP", "Cryptography", "Secrets", "ApprovalTestKit",
        "BuiltPrograms", "FreePorts", "ProgramHarness",
      ],
      resources: [.copy("Fixtures")]),
    tests("Interop", of: ["BuiltPrograms", "OpenPGP", "Secrets"]),
    tests("HTTPTests", of: ["HTTP"]),
    tests(
      "CurlHTTPTests", of: ["ApprovalTestKit", "BuiltPrograms", "CurlHTTP", "CCurl", "HTTP", "ProgramHarness"],
      resources: [.copy("Fixtures")]),
    tests("MQTTTests", of: ["ApprovalTestKit", "MQTT", "HTTP", "ProgramHarness", "Secrets"]),
    tests("SecretsTests", of: ["Secrets"]),
    tests("CryptographyTests", of: ["COpenSSL", "Cryptography", "OpenSSLProgram", "Secrets"]),
    tests("SQLiteTests", of: ["SQLite", "CSQLite"]),
    tests("DelayLoadTests", of: ["CDelayLoadProbe"]),
    .target(name: "CDelayLoadProbe", dependencies: ["CDelayLoad"], path: "Tests/Support/CDelayLoadProbe"),
    // Of Readers/finger, which scripts/readers builds.
    tests("ReaderFingerTests", of: ["BuiltPrograms"], resources: [.copy("Fixtures")]),
    tests(
      "VaultTests",
      of: [
        "Vault", "MobileAuth", "PINProtection", "Cryptography", "Secrets", "SQLite", "CSQLite", "VaultModel",
        "OfflineAttack", "ApprovalTestKit", "BuiltPrograms", "vault-crash-probe",
      ]),
    // Runs the programs as processes, together with their peers.
    testSupport("ProgramHarness", over: ["ApprovalTestKit", "BuiltPrograms", "CSpawn", "FreePorts"]),
    testSupport("BuiltPrograms", over: ["CSpawn"]),
    testSupport("FreePorts", over: []),
    testSupport("RecordedLog", over: [logging]),
    testSupport("JSONSchema", over: ["JSONValues"]),
    testSupport("OpenSSLProgram", over: ["BuiltPrograms"]),
    testSupport("TestAM", over: ["COpenSSL", "Cryptography", "JSONValues", "Secrets"]),
    testSupport("OfflineAttack", over: ["COfflineAttack", "COpenSSL"], computes: true),
    .target(
      name: "COfflineAttack", dependencies: ["COpenSSL"], path: "Tests/Support/COfflineAttack",
      cSettings: [.unsafeFlags(["-O2"])]),
    testSupport("VaultModel", over: ["Vault", "MobileAuth", "Cryptography", "Secrets", "ApprovalTestKit"]),
    .executableTarget(
      name: "vault-crash-probe", dependencies: ["VaultModel", "Vault", "MobileAuth"],
      path: "Tests/Support/vault-crash-probe", swiftSettings: strictness),
  ] + (hasTokenServer ? tokenServerTargets : []),
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

if hasFuzzer {
  package.targets += fuzzerTargets
  if !hasTokenServer { package.dependencies.append(nio) }
}
if hasBenchmarks { package.targets += benchmarkTargets }

// `HARDWARE_TESTS_ONLY=1` leaves out what does not depend on the versions of system libraries: see scripts/debian13.
if Context.environment["HARDWARE_TESTS_ONLY"] != nil {
  let tests: Set = ["BoardsTests", "BenchKernel", "GPIOTests", "USBKeypadTests"]
  let probes: Set = ["card-secrets", "constant-time-probe", "vault-crash-probe"]
  package.targets.removeAll { $0.type == .test ? !tests.contains($0.name) : probes.contains($0.name) }
}
