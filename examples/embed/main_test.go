package main

// The output is what the two versions hold.
func Example() {
	main()
	// Output:
	// main~1 [12.5 13 11 0 0 0]
	// main [12.5 13 11 14 15.5 13]
}
