// swift-tools-version: 6.2
// The measurements of docs/benchmarks.md; run them with scripts/bench. A package of its own, so that nobody who builds
// the product builds this.
import PackageDescription

let package = Package(
  name: "benchmarks",
  dependencies: [
    .package(name: "approval-token", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    .systemLibrary(name: "CBench", providers: [.apt(["libssl-dev"])]),
    .executableTarget(
      name: "bench",
      dependencies: [
        "CBench",
        .product(name: "ReferenceProtocol", package: "approval-token"),
        .product(name: "PINEntry", package: "approval-token"),
        .product(name: "Hardware", package: "approval-token"),
        .product(name: "TestAM", package: "approval-token"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
      ]),
    // What the panel is held against on the bench.
    .executableTarget(name: "reference-gpio", linkerSettings: [.linkedLibrary("gpiod")]),
    .executableTarget(name: "reference-usb", linkerSettings: [.linkedLibrary("usb-1.0")]),
    .executableTarget(
      name: "timing",
      dependencies: [
        .product(name: "PINEntry", package: "approval-token"),
        .product(name: "ApprovalTestKit", package: "approval-token"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
