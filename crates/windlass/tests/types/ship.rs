// made by the test
