// swift-tools-version: 6.2
// Coverage-guided fuzzing of everything that reads what comes from outside; run it with scripts/fuzz, which gives the
// compiler -sanitize=fuzzer for every module, so that libFuzzer sees the parsers' branches and not only the harness's.
// A package of its own, so that building the product does not build this.
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

let parsers = Target.Dependency.product(name: "Parsers", package: "approval-token")

let package = Package(
  name: "fuzzing",
  dependencies: [
    .package(name: "approval-token", path: ".."),
    .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
  ],
  targets: [
    // The files of the token server that read without its HTTP library, as links.
    .target(
      name: "ServerParsers", dependencies: [parsers, .product(name: "TOMLKit", package: "TOMLKit")],
      swiftSettings: settings),
    .executableTarget(name: "fuzz", dependencies: ["ServerParsers", parsers], swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)
